select canon_version, scope
from crawl
