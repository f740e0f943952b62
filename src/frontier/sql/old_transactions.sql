-- The oldest transaction of this database that is older than $1 ms. Autovacuum makes way by itself, but where it must prevent a wraparound.
select pid as "pid?",
       name as "name!",
       (extract(epoch from now() - since) * 1000)::bigint as "age_ms!"
from (select pid, application_name as name, xact_start as since
      from pg_stat_activity
      where datname = current_database()
        and pid <> pg_backend_pid()
        and (backend_type <> 'autovacuum worker' or query like '%(to prevent wraparound)%')
      union all
      select null, gid, prepared
      from pg_prepared_xacts
      where database = current_database()) t
where since < now() - make_interval(secs => $1::bigint / 1000.0)
order by since
limit 1
