//go:build unix

package redistest

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/testserver"
)

func connect(t *testing.T, rawURL string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestStart_ServersAreSeparateAndRequireThePassword(t *testing.T) {
	first, second := Start(t), Start(t)
	if err := connect(t, first.URL()).Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, second.URL()).Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("the key of another server: %v", err)
	}
	wrong := strings.Replace(first.URL(), "@127", "x@127", 1)
	if err := connect(t, wrong).Ping(t.Context()).Err(); err == nil {
		t.Error("a wrong password was accepted")
	}
}

func TestRestart_SameAddressAndEmpty(t *testing.T) {
	s := Start(t)
	before, client := s.URL(), connect(t, s.URL())
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill(t)
	if client.Ping(t.Context()).Err() == nil {
		t.Error("a killed server answers")
	}
	s.Restart(t)
	if s.URL() != before {
		t.Errorf("%s has become %s", before, s.URL())
	}
	if err := connect(t, before).Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("Get after a restart: %v; want nothing", err)
	}
}

func TestFind_MissingServerNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if program, err := find(); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "`make test`") {
		t.Errorf("find = %q, %v; want an error that names make test", program, err)
	}
}

// However the test process ends, no server remains.
func TestGuard_CleansUpAfterTheTestProcess(t *testing.T) {
	testserver.CheckCleanup(t, func() (int, string) { return Start(t).process.Process.Pid, "" })
}
