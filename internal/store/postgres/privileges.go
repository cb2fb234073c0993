package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// requiredPrivileges lists what a server does with each table. It leaves out deletion,
// re-encryption and migration: a user without those privileges can still record decisions.
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

// privilegesSQL returns the missing privileges, and whether the server accepts writes.
const privilegesSQL = `
SELECT current_setting('transaction_read_only') = 'off', coalesce((
    SELECT string_agg(need.what || ' on ' || need.name, ', ' ORDER BY need.name, need.what) FROM (
        SELECT named.name, what FROM unnest($1::text[], $2::text[]) AS named (name, rights) CROSS JOIN unnest(string_to_array(named.rights, ', ')) AS what
        WHERE NOT has_table_privilege(named.name, what)
        UNION ALL SELECT 'ready_numbers', 'USAGE' WHERE NOT has_sequence_privilege('ready_numbers', 'USAGE')
    ) AS need), '')`

// Writable returns nil if this user has every right that a server needs, and the database takes
// writes; see [store.WriteChecker].
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
			return fmt.Errorf("%w: the server is read-only", ErrUnavailable)
		case missing != "":
			return fmt.Errorf("%w: missing privileges: %s", ErrDenied, missing)
		}
		return nil
	})
}
