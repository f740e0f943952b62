insert into crawl (canon_version, scope)
values ($1, $2)
on conflict do nothing
