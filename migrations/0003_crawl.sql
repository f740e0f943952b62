-- What all machines of a crawl must agree on.

create table crawl (
    id             boolean not null default true,
    created_at     timestamptz not null default now(),
    canon_version  int not null,
    scope          text not null,
    constraint crawl_pkey primary key (id),
    constraint crawl_is_one check (id)
);

comment on table  crawl is 'One row: one crawl is one database.';
comment on column crawl.canon_version is 'Version of the rules that make a canonical URL: another one would give tasks another identity.';
comment on column crawl.scope is 'host, site, prefix or any: how far from its seeds the crawl goes.';

create table scope_rules (
    id         int generated always as identity,
    created_at timestamptz not null default now(),
    rule       text not null,
    host       text not null,
    source     text not null,
    constraint scope_rules_pkey primary key (id),
    constraint scope_rules_rule_host_key unique (rule, host),
    constraint scope_rules_length check (length(rule) between 1 and 2100 and length(host) between 1 and 255)    -- a btree entry over 2,700 bytes errors
);

-- Adds rules that are not there yet. One transaction at a time: ids are committed in their order, so that who has read up to an id has read all
-- below it.
create function add_scope_rules(rules text[], hosts text[], from_source text)
    returns void
    language plpgsql
    set search_path from current
as $$
begin
    perform pg_advisory_xact_lock('scope_rules'::regclass::bigint);
    insert into scope_rules (rule, host, source)
    select distinct n.rule collate "C", n.host collate "C", from_source
    from unnest(rules, hosts) as n (rule, host)
    where not exists (select from scope_rules r where r.rule = n.rule and r.host = n.host)
    order by 1, 2
    on conflict do nothing;
end
$$;

comment on table  scope_rules is 'What belongs to the crawl: one row a host, site or prefix that a seed (or a seed''s own redirect) named.';
comment on column scope_rules.rule is 'The host, site or prefix; * where the scope is any.';
comment on column scope_rules.host is 'The host name that the seed named: this very host may have an address that is not public.';
comment on column scope_rules.source is 'seed, or redirect: a seed that answered with its www or https twin.';
