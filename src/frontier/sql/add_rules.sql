-- Adds rules that are not there yet, under the settings that this process knows. $1 rules, $2 hosts, $3 source, $4 version of the settings
select add_scope_rules($1, $2, $3, $4) as "added!"
