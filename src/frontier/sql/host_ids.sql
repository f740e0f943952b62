select id, authority
from hosts
where authority = any ($1)
