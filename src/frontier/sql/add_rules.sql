-- Rules that are not there yet. $1 rules, $2 host names, $3 source
select add_scope_rules($1::text[], $2::text[], $3::text)
