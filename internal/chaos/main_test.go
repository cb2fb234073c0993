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
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

// A replica is this test binary with this variable set: the JSON of a replicaConfig.
const replicaVariable = "FERMATA_CHAOS_REPLICA"

// worldsAtOnce is how many worlds there are at a time. They wait more than they work, so there may be more than there are processors.
const worldsAtOnce = "6"

func TestMain(m *testing.M) {
	config := os.Getenv(replicaVariable)
	if config == "" {
		if err := flag.Set("test.parallel", worldsAtOnce); err != nil { // whoever says otherwise is heard later
			panic(err)
		}
		os.Exit(pgtest.Main(m))
	}
	if err := replicate(config); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// replicaConfig is what a replica has to know.
type replicaConfig struct {
	Protocol protocol
	Store    string // a file of SQLite, or a connection string of PostgreSQL
	Sink     string
	Life     int64 // counts the processes of a test, from 1
	Lease    time.Duration
	Timeout  time.Duration // of questions
}

// protocol is what a replica speaks to its store.
type protocol string

const (
	protocolFermata protocol = "fermata"
	protocolDesk    protocol = "desk" // Fermata's, with routes and several people to agree
	protocolSeed    protocol = "seed"
)

// requestTimeout is how long a person waits for an answer, and a replica for its last guests.
const requestTimeout = 1500 * time.Millisecond

// replicate is a replica's life. It ends when somebody terminates it or its parent is gone; being killed is not up to it.
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
	_ = server.Shutdown(ctx) // guests that are too slow ask again elsewhere
	s.stop()
	return nil
}

func open(config replicaConfig) (service, error) {
	switch config.Protocol {
	case protocolSeed:
		return openSeed(config)
	case protocolDesk:
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

// plaintextSealer is a box that seals nothing, so that the checks can read what is in the store. What belongs elsewhere does not open here either.
type plaintextSealer struct{}

var errWrongLabel = errors.New("this value belongs elsewhere")

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

// Current reports that nothing has to be sealed anew.
func (plaintextSealer) Current([]byte) bool { return true }

// unseal is what is in a glass box, whatever its label.
func unseal(sealed []byte) []byte {
	_, data, _ := bytes.Cut(sealed, []byte{0})
	return data
}
