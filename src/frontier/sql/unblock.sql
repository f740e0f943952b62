-- Takes entries from a block list. $1 list, $2 entries
select unblock($1, $2)
