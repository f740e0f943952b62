-- What the operator calls a seed by, and all that it leads to.

alter table tasks add column label text;

comment on column tasks.label is 'What the seed was given as its label, and all that its links and redirects lead to; null = none.';
