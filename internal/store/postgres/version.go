package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Version returns the number of migrations of the schema, and the names of all migrations of this
// build. It changes nothing. A missing schema has none. For a foreign or newer schema it returns
// the error of [Open].
func Version(ctx context.Context, connString string, config Config) (applied int, known []string, err error) {
	steps, err := migrations()
	if err != nil {
		return 0, nil, wrap("inspect", "database", err)
	}
	for _, step := range steps {
		known = append(known, step.Name)
	}
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return 0, nil, wrap("inspect", "database", err)
	}
	settings, err := poolConfig(connString, config)
	if err != nil {
		return 0, nil, wrap("inspect", "database", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return 0, nil, wrap("inspect", "database", err)
	}
	defer pool.Close()
	found, err := inspectSchema(ctx, pool, config.Schema, steps)
	if err != nil {
		name := cmp.Or(settings.ConnConfig.Database, settings.ConnConfig.User) + "." + config.Schema
		return 0, nil, wrap("inspect", name, withContext(ctx, err))
	}
	return found.applied, known, nil
}
