select authority from hosts order by id limit 100000
