package postgres

import (
	"testing"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

func TestI2_I16_KilledProcessesShareRuns(t *testing.T) {
	connString := pgtest.New(t)
	over := func() { // the server may still execute statements of a dead process
		waitFor(t, raw(t, connString), `
SELECT count(*) = 0 FROM fermata.runs WHERE status = 'running' AND lease_until > clock_timestamp()`)
	}
	storetest.Processes(t, mustOpen(t, connString, Config{}), over, childDatabase+"="+connString, childRun+"=")
}
