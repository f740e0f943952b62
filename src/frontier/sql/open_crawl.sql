insert into crawl (canon_version)
values ($1)
on conflict do nothing
