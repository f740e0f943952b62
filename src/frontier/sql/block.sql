-- Adds entries to a block list. $1 list, $2 entries, each once, $3 lines
select block($1, $2, $3)
