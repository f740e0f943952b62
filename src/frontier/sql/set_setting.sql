-- $1 key, $2 value, $3 version of the settings that it was judged with, $4 … $7 the last rule that was there, and the rules of a new scope with
-- their hosts and sources, or null
select set_setting($1, $2, $3, $4, $5, $6, $7) as version
