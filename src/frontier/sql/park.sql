select park_hosts($1::int[]) as "parked!"
