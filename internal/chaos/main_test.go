//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// A replica is this test binary with this variable set: the JSON of a replicaConfig.
const replicaVariable = "FERMATA_CHAOS_REPLICA"

// worldsAtOnce is the number of parallel tests. They mostly wait, so there may be more than
// processors.
const worldsAtOnce = "6"

func TestMain(m *testing.M) {
	config := os.Getenv(replicaVariable)
	if config == "" {
		// a flag on the command line overrides it
		if err := flag.Set("test.parallel", worldsAtOnce); err != nil {
			panic(err)
		}
		os.Exit(pgtest.Main(m))
	}
	if err := replicate(config); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// replicaConfig is the configuration of a replica.
type replicaConfig struct {
	Protocol protocol
	Store    string // a SQLite file or a PostgreSQL connection string
	Sink     string
	Life     int64 // numbers the processes of a test, from 1
	Lease    time.Duration
	Timeout  time.Duration // of interrupts
}

// protocol is the protocol between a replica and its store.
type protocol string

const (
	protocolFermata protocol = "fermata"
	protocolDesk    protocol = "desk" // the current one, with routes and several approvers
)

// requestTimeout is how long a person waits for a reply, and a replica for its last requests.
const requestTimeout = 1500 * time.Millisecond

// replicate runs a replica. It ends when it is terminated or its parent is gone.
func replicate(text string) error {
	var config replicaConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
	}()
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	s, err := open(config)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(s)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Println(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-orphaned:
		return errors.New("the parent is gone")
	case <-terminated:
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_ = server.Shutdown(ctx) // slow clients retry elsewhere
	s.stop()
	return nil
}

func open(config replicaConfig) (service, error) {
	if config.Protocol == protocolDesk {
		return openDesk(config)
	}
	return openFermata(config)
}

// openStore opens a store by its name.
func openStore(ctx context.Context, name string) (s closableStore, err error) {
	if !strings.HasPrefix(name, "postgres:") {
		return sqlite.Open(name)
	}
	return postgres.Open(ctx, name, postgres.Config{})
}

type closableStore interface {
	store.Store
	io.Closer
}

// plaintextSealer does not encrypt, so that the checks can read the store. A value with a wrong
// label does not open.
type plaintextSealer struct{}

var errWrongLabel = errors.New("wrong label")

func (plaintextSealer) Seal(label string, data []byte) []byte {
	if data == nil {
		return nil
	}
	return append(append([]byte(label), 0), data...)
}

func (plaintextSealer) Open(label string, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	data, ok := bytes.CutPrefix(sealed, append([]byte(label), 0))
	if !ok {
		return nil, errWrongLabel
	}
	return data, nil
}

// Current reports that nothing must be encrypted again.
func (plaintextSealer) Current([]byte) bool { return true }

// unseal returns the data of a value, whatever its label.
func unseal(sealed []byte) []byte {
	_, data, _ := bytes.Cut(sealed, []byte{0})
	return data
}
