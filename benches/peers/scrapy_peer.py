"""A plain crawl with Scrapy, robots.txt obeyed, no delay, nothing kept: scrapy_peer.py URL CONCURRENCY DOMAIN"""
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

SEED, CONCURRENCY, DOMAIN = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Peer(scrapy.Spider):
    name = "peer"
    allowed_domains = [DOMAIN]
    links = LinkExtractor()

    async def start(self):
        yield scrapy.Request(SEED)

    def parse(self, response):
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.links.extract_links(response):
                yield scrapy.Request(link.url)


process = CrawlerProcess({
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": CONCURRENCY,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_WARNSIZE": 0,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    "USER_AGENT": "scrapy-peer/1.0",
    # Breadth first, as its FAQ has it.
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
})
process.crawl(Peer)
process.start()
