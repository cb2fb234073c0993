//go:build unix

package chaos

import (
	"github.com/fermata-go/fermata/internal/simtest"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The parts that the crash tests rely on work.

func TestSink_ExecutesCallsExceptBlocked(t *testing.T) {
	s := newSink(t, func() time.Duration { return 0 }, 0)
	s.pause = func(time.Duration) {}
	ask := func(of simtest.TargetKind, key string, life int64) error {
		w := &outside{url: s.server.URL, life: life}
		_, err := w.call(t.Context(), call{Target: of, Key: key})
		return err
	}
	for range 2 {
		if err := ask(simtest.NonIdempotent, "dumb", 1); err != nil {
			t.Fatal(err)
		}
		if err := ask(simtest.Idempotent, "known", 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.log()); n != 3 {
		t.Errorf("%d calls, want both calls of the target without keys and one of the other", n)
	}
	if s.target.Block("dumb", 9) {
		t.Error("an executed call can be blocked")
	}
	if !s.target.Block("doubtful", 2) {
		t.Error("a call that was not executed cannot be blocked")
	}
	if err := ask(simtest.NonIdempotent, "doubtful", 2); err == nil {
		t.Error("a blocked call was executed")
	}
	if err := ask(simtest.NonIdempotent, "doubtful", 3); err != nil {
		t.Errorf("a later replica cannot execute it: %v", err)
	}
}

func TestProxy_InjectsNetworkFaults(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	p, way := throughProxy(t, "postgres://"+echo.Addr().String()+"/db")
	host := strings.TrimSuffix(strings.TrimPrefix(way, "postgres://"), "/db")
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	// say returns the reply, with a timeout.
	say := func(conn net.Conn, text string) (string, error) {
		if _, err := conn.Write([]byte(text)); err != nil {
			return "", err
		}
		back := make([]byte, len(text))
		_, err := io.ReadFull(conn, back)
		return string(back), err
	}
	conn := dial()
	for name, w := range map[string]networkFaults{"fair": {}, "sliced": {slice: 2, latency: time.Microsecond}} {
		p.set(w)
		if back, err := say(conn, "hello"); err != nil || back != "hello" {
			t.Errorf("%s: %q, %v", name, back, err)
		}
	}
	p.set(networkFaults{hole: true})
	heard := make(chan string)
	go func() {
		back, _ := say(conn, "are you there?")
		heard <- back
	}()
	second := dial()
	if err := second.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if back, err := say(second, "and you?"); err == nil {
		t.Errorf("a blackhole returned %q", back)
	}
	p.set(networkFaults{})
	if back := <-heard; back != "are you there?" {
		t.Errorf("after the blackhole: %q", back)
	}
	p.reset()
	if _, err := say(conn, "hello"); err == nil {
		t.Error("a connection survives its reset")
	}
	p.set(networkFaults{refuse: true})
	if conn, err := net.Dial("tcp", host); err == nil { // or it is refused before it is noticed
		defer conn.Close()
		if _, err := say(conn, "hello"); err == nil {
			t.Error("a connection is accepted although they are refused")
		}
	}
}

// endlessVariable makes this test binary run replicas until it is killed.
const endlessVariable = "FERMATA_CHAOS_ENDLESS"

// Whatever happens to the tests, no replica remains, not even a stopped one.
func TestFleet_StopsWithTheTests(t *testing.T) {
	if os.Getenv(endlessVariable) != "" {
		f := newFleet(t, 2, func(int) replicaConfig {
			return replicaConfig{Protocol: protocolFermata, Store: os.Getenv(endlessVariable), Sink: "http://127.0.0.1:1", Lease: lease}
		})
		for slot := range f.slots {
			<-f.current(slot).ready
		}
		go func() { _ = f.current(0).freeze(200 * time.Millisecond) }()
		os.Stdout.WriteString(f.current(0).addr + "\n" + f.current(1).addr + "\n")
		select {}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := exec.Command(exe, "-test.run", "^"+t.Name()+"$")
	tests.Env = append(os.Environ(), endlessVariable+"="+t.TempDir()+"/fermata.db")
	stdout, err := tests.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 0, 100)
	for strings.Count(string(text), "\n") < 2 {
		piece := make([]byte, 100)
		n, err := stdout.Read(piece)
		if err != nil {
			t.Fatalf("%v after %q", err, text)
		}
		text = append(text, piece[:n]...)
	}
	if err := tests.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = tests.Wait() // it was killed
	for _, addr := range strings.Fields(string(text)) {
		for deadline := time.Now().Add(time.Minute); ; {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				break // the process is gone
			}
			conn.Close()
			if time.Now().After(deadline) {
				t.Fatalf("the replica at %s is still running", addr)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
