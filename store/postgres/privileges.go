package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// requiredPrivileges is what a server does with each table. What only those do who delete or seal anew is not in it, nor what is done when a store is opened:
// whoever has no right to that can still record what people decide.
var requiredPrivileges = map[string]string{
	"audit":              "SELECT, INSERT",
	"checkpoint_parts":   "SELECT, INSERT, UPDATE, DELETE",
	"checkpoints":        "SELECT, INSERT, UPDATE, DELETE",
	"credentials":        "SELECT, INSERT, UPDATE",
	"effects":            "SELECT, INSERT, UPDATE",
	"events":             "SELECT, INSERT",
	"feed_base":          "SELECT",
	"fermata_migrations": "SELECT",
	"interrupts":         "SELECT, INSERT, UPDATE",
	"once":               "SELECT, INSERT",
	"papers":             "SELECT, INSERT, UPDATE",
	"resumes":            "SELECT, INSERT, UPDATE",
	"runs":               "SELECT, INSERT, UPDATE",
}

// privilegesSQL is what is missing of the rights, and whether the server takes writes at all.
const privilegesSQL = `
SELECT current_setting('transaction_read_only') = 'off', coalesce((
    SELECT string_agg(need.what || ' on ' || need.name, ', ' ORDER BY need.name, need.what) FROM (
        SELECT named.name, what FROM unnest($1::text[], $2::text[]) AS named (name, rights) CROSS JOIN unnest(string_to_array(named.rights, ', ')) AS what
        WHERE NOT has_table_privilege(named.name, what)
        UNION ALL SELECT 'ready_numbers', 'USAGE' WHERE NOT has_sequence_privilege('ready_numbers', 'USAGE')
    ) AS need), '')`

// Writable returns nil if this user has every right that a server needs, and the database takes writes; see [store.WriteChecker].
func (s *Store) CheckWritable(ctx context.Context) error {
	tables := slices.Sorted(maps.Keys(requiredPrivileges))
	rights := make([]string, len(tables))
	for i, table := range tables {
		rights[i] = requiredPrivileges[table]
	}
	return s.call(ctx, "check the privileges in", func(ctx context.Context) error {
		var writes bool
		var missing string
		err := s.pool.QueryRow(ctx, privilegesSQL, tables, rights).Scan(&writes, &missing)
		switch {
		case err != nil:
			return err
		case !writes:
			return fmt.Errorf("%w: it can only be read from", ErrUnavailable)
		case missing != "":
			return fmt.Errorf("%w: this user needs %s", ErrDenied, missing)
		}
		return nil
	})
}
