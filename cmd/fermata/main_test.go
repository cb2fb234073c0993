package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"fermata": main}) }

// The scripts in testdata/script run the program as users, scripts and operators do. Each command
// is its own process.
func TestScripts(t *testing.T) {
	// under nohup servers ignore SIGHUP, and one that is stopped this way would run forever
	if signal.Ignored(syscall.SIGHUP) {
		heard := make(chan os.Signal, 1)
		// a signal caught here is not ignored by child processes
		signal.Notify(heard, syscall.SIGHUP)
		t.Cleanup(func() { signal.Stop(heard) })
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true,
		// a server that should not have started would run forever
		Deadline: time.Now().Add(15 * time.Minute),
		Setup: func(env *testscript.Env) error {
			// otherwise concurrent servers would use the same port
			env.Setenv("FERMATA_METRICS_ADDR", "off")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "demo": startDemo, "serve": startServe, "end": end, "post": post, "get": get, "grab": grab, "mask": mask, "until": until, "interrupt": interrupt, "sql": alter,
		},
	})
}

// exits CODE COMMAND… runs a command that must exit with this code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("it exited with %d, not with %s", code, args[0])
	}
}

// interrupt CODE COMMAND… runs a command, sends Ctrl-C after its first output, and expects the
// code.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	p := spawn(ts, "stdout", "interrupted.err", args[2:]...)
	_, err := p.out.ReadString('\n')
	ts.Check(err)
	ts.Check(p.Process.Signal(syscall.SIGINT))
	_, _ = io.ReadAll(p.out)
	err = p.Wait()
	p.ended = true
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || strconv.Itoa(ended.ExitCode()) != args[0] {
		ts.Fatalf("it ended with %v", err)
	}
}

// alter FILE STATEMENT changes a database directly.
func alter(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// process is a server in the background.
type process struct {
	*exec.Cmd
	out   *bufio.Reader
	ended bool
}

// servers holds the server of each script, by its directory.
var servers = make(chan map[string]*process, 1)

func init() { servers <- make(map[string]*process) }

func spawn(ts *testscript.TestScript, out, errFile string, args ...string) *process {
	p := &process{Cmd: exec.Command("fermata", args...)}
	path, err := exec.LookPath("fermata")
	ts.Check(err)
	p.Path, p.Dir = path, ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "FERMATA_METRICS_ADDR", "FERMATA_STORE_URL", "FERMATA_KEY_FILE", "FERMATA_URL", "FERMATA_TOKEN"} {
		p.Env = append(p.Env, name+"="+ts.Getenv(name))
	}
	stdout, err := p.StdoutPipe()
	ts.Check(err)
	stderr, err := p.StderrPipe()
	ts.Check(err)
	file, err := os.Create(ts.MkAbs(errFile))
	ts.Check(err)
	ts.Check(p.Start())
	said := io.TeeReader(stderr, file)
	if out == "stderr" {
		p.out = bufio.NewReader(said)
		go func() { _, _ = io.Copy(io.Discard, stdout) }()
	} else {
		p.out = bufio.NewReader(stdout)
		go func() { _, _ = io.Copy(io.Discard, said) }()
	}
	if args[0] == "demo" || args[0] == "serve" {
		all := <-servers
		all[ts.Getenv("WORK")] = p
		servers <- all
	}
	ts.Defer(func() {
		if !p.ended {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		_ = file.Close()
	})
	return p
}

// startDemo starts the demo on a free port, and configures the client commands for it.
func startDemo(ts *testscript.TestScript, _ bool, args []string) {
	p := spawn(ts, "stdout", "demo.err", append([]string{"demo", "--json", "--every", "0s", "--addr", "127.0.0.1:0"}, args...)...)
	line, err := p.out.ReadString('\n')
	ts.Check(err)
	var ready map[string]string
	ts.Check(json.Unmarshal([]byte(line), &ready))
	if len(ready) != 4 || !strings.HasPrefix(ready["signIn"], ready["url"]+"/s/") || ready["account"] != "demo" || !strings.HasPrefix(ready["url"], "http://127.0.0.1:") || !strings.HasPrefix(ready["token"], "fermata_") {
		ts.Fatalf("the demo printed %s", line)
	}
	ts.Setenv("FERMATA_URL", ready["url"])
	ts.Setenv("FERMATA_TOKEN", ready["token"])
}

// startServe starts a server on a free port.
func startServe(ts *testscript.TestScript, _ bool, args []string) {
	p := spawn(ts, "stderr", "serve.err", append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			ts.Fatalf("it does not serve: %s", line)
		}
		if found := regexp.MustCompile(`metrics=(http[^ ]*/metrics)`).FindStringSubmatch(line); found != nil {
			ts.Setenv("METRICS", found[1])
		}
		if found := regexp.MustCompile(`msg=serving url=(https?://[^ ]*)`).FindStringSubmatch(line); found != nil {
			ts.Setenv("FERMATA_URL", found[1])
			return
		}
	}
}

// end INT|TERM|HUP stops the server, which must exit cleanly without further standard output.
func end(ts *testscript.TestScript, _ bool, args []string) {
	all := <-servers
	p := all[ts.Getenv("WORK")]
	servers <- all
	how := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	ts.Check(p.Process.Signal(how))
	rest, _ := io.ReadAll(p.out)
	err := p.Wait()
	p.ended = true
	if err != nil {
		ts.Fatalf("it ended with %v", err)
	}
	if p.Args[1] == "demo" && len(rest) > 0 {
		ts.Fatalf("it also printed %s", rest)
	}
}

// request sends an HTTP request, as curl would.
func request(ts *testscript.TestScript, method, where, body string, want string) {
	if strings.HasPrefix(where, "/") {
		where = ts.Getenv("FERMATA_URL") + where
	}
	r, err := http.NewRequest(method, where, strings.NewReader(body))
	ts.Check(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+ts.Getenv("FERMATA_TOKEN"))
	response, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(append(data, '\n'))
	ts.Check(err)
	if strconv.Itoa(response.StatusCode) != want {
		ts.Fatalf("%s %s returned %s: %s", method, where, response.Status, data)
	}
}

// post STATUS PATH BODY
func post(ts *testscript.TestScript, _ bool, args []string) {
	request(ts, "POST", args[1], args[2], args[0])
}

// get STATUS URL
func get(ts *testscript.TestScript, _ bool, args []string) {
	request(ts, "GET", args[1], "", args[0])
}

// grab NAME PATTERN sets a variable to the match of the pattern in the last output.
func grab(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no %s in the output", args[1])
	}
	ts.Setenv(args[0], found[len(found)-1])
}

// masks are the values that differ each time.
var masks = []struct{ pattern, with string }{
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "TIME"},
	{`\b(run|int)_[0-9a-z]{26}`, "${1}_ID"},
	{`fermata_[0-9a-z]{55}`, "KEY"},
	{`"id":"[0-9a-z]{16}"`, `"id":"ID"`},
	{`"shown":"[0-9a-f]{64}"`, `"shown":"DIGEST"`},
	{`"(bytes|free|before|after)":\d+`, `"$1":N`},
	{`"version":"[^"]*"`, `"version":"VERSION"`},
	{`"go":"[^"]*"`, `"go":"GO"`}, {`"os":"[^"]*"`, `"os":"OS"`}, {`"arch":"[^"]*"`, `"arch":"ARCH"`},
}

// mask FILE NAME copies an output without values that differ each time.
func mask(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for _, m := range masks {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// until PATTERN COMMAND… repeats a command until its output matches.
func until(ts *testscript.TestScript, _ bool, args []string) {
	wanted := regexp.MustCompile(args[0])
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("it never printed %s", args[0])
}
