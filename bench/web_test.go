package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Ten requests at once are not a load, but each of them passes through all layers, and so does
// every stream.
func TestWeb_StreamsAndOverload(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		f := newTestComparison(t, db, reviewWorkload(randomText(kib)))
		f.plan.web = true
		h, _, err := f.make(t.Context(), sideHTTP)
		if err != nil {
			t.Fatal(err)
		}
		defer h.close()
		client := h.(*callerPool).runKeeper.(*webClient)
		streams, err := client.streams(t.Context(), db.name(), 20)
		if err != nil || streams.DelayP99 == 0 || streams.Streams != 20 || streams.Heap[0] == 0 || streams.Resident[0] == 0 || streams.Heap[1] == 0 {
			t.Errorf("streams: %+v, %v", streams, err)
		}
		over := client.overload(t.Context(), "over", 2, time.Second)
		if over.Good != 10 || over.Refused != 0 || over.Failed != 0 || over.Lasted == 0 || len(over.good) != 10 {
			t.Errorf("overload: %+v; want ten completed", over)
		}
	})
}

// A rejected request gets an error at once, and earlier runs continue.
func TestWebClient_DistinguishesRejectionFromFailure(t *testing.T) {
	status := http.StatusServiceUnavailable
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, `{"status":"running","output":{"topic":"tea","verdict":"approve","status":"published"}}`)
	}))
	defer front.Close()
	w, err := newRawHTTPClient(front.URL, chatPath, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.closeIdle()
	client := &webClient{http: w}
	for code, refused := range map[int]bool{429: true, 503: true, 202: false, 500: false, 401: false} {
		status = code
		for name, err := range map[string]error{"start": client.start(t.Context(), "k"), "decide": client.decide(t.Context(), "k")} {
			said, ok := errors.AsType[*statusError](err)
			if !ok || said.isRejection() != refused {
				t.Errorf("%s, %d: %v", name, code, err)
			}
		}
	}
	status = http.StatusOK
	if err := client.decide(t.Context(), "k"); err == nil {
		t.Error("a run that has not ended counted as decided")
	}
	if err := client.start(t.Context(), "k"); err == nil {
		t.Error("a run that does not wait counted as started")
	}
}

func TestOverload_CountsResults(t *testing.T) {
	r := overloadRound{Capacity: 10}
	for range 8 {
		r.count(nil, time.Second, time.Millisecond)
	}
	r.count(&statusError{status: 503}, 9*time.Second, time.Millisecond)
	r.count(&statusError{status: 500}, 9*time.Second, time.Millisecond)
	r.count(io.ErrUnexpectedEOF, 9*time.Second, time.Millisecond)
	if r.Good != 8 || r.Refused != 1 || r.Failed != 2 || r.Lasted != time.Second || r.goodput() != 0.8 || len(r.good) != 8 || len(r.refused) != 1 {
		t.Errorf("%+v, goodput %g", r, r.goodput())
	}
	if (overloadRound{}).goodput() != 0 || (overloadResult{}).goodput() != 0 {
		t.Error("nothing done counted as something")
	}
	turns := overloadResult{Rounds: []overloadRound{r, {Capacity: 10, Good: 9, Lasted: time.Second}, {Capacity: 30, Good: 30, Lasted: time.Second}}}
	if sum := turns.sum(); turns.goodput() != 0.9 || sum.Good != 47 || sum.Failed != 2 || sum.Capacity != 10 {
		t.Errorf("%+v, goodput %g", sum, turns.goodput())
	}
}

// A decision that waits for an earlier one is late: its latency counts from when it was due.
func TestAtPace_LatencyCountsFromDueTime(t *testing.T) {
	done := make(chan int, 3)
	first := make(chan struct{})
	latencies, err := atPace(1e6, 3, func(n int) error {
		if n == 2 {
			close(first)
		}
		<-first
		done <- n
		return nil
	})
	if err != nil || len(done) != 3 || len(latencies) != 3 || slices.Min(latencies) <= 0 {
		t.Errorf("%d done, %v, %v", len(done), latencies, err)
	}
	if _, err := atPace(1e6, 2, func(n int) error { return []error{nil, io.EOF}[n] }); !errors.Is(err, io.EOF) {
		t.Errorf("a failure is lost: %v", err)
	}
}

// The disk alone is measured on a real disk, and leaves no files.
func TestFsync_CleansUp(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	latencies, err := fsyncAtPace(1e6, 3)
	if left, _ := os.ReadDir(dir); err != nil || len(latencies) != 3 || slices.Min(latencies) <= 0 || len(left) != 0 {
		t.Errorf("%v, %v; there are %v", latencies, err, left)
	}
	t.Setenv("TMPDIR", dir+"/nowhere")
	if _, err := fsyncAtPace(1e6, 1); err == nil {
		t.Error("nothing was written")
	}
}

func TestStream_ReadUntilOutcome(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nid: 1\nevent: created\ndata: {}\n\n"
	for name, test := range map[string]struct {
		text string
		good bool
	}{
		"it waits":     {head + "event: outcome\ndata: {}\n\n", true},
		"truncated":    {head, false},
		"closed":       {"HTTP/1.1 503 Service Unavailable\r\n\r\nevent: outcome\n", false},
		"nothing came": {"", false},
	} {
		if err := readUntilOutcome(strings.NewReader(test.text)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJudge_WebGoals(t *testing.T) {
	row := func(name string, act operation, perSecond float64) holdRow {
		return holdRow{Name: name, Operation: act, Sides: map[string]holdSide{
			sideHTTP: {PerSecond: []float64{perSecond}}, sideRawSQL: {PerSecond: []float64{100}},
			sideOurs: {PerSecond: []float64{1000}}, // not used here
		}}
	}
	report := webReport{
		holdReport: holdReport{Rows: []holdRow{
			row("http/sqlite/1", opStart, 1), // only decisions are judged
			row("http/sqlite/1", opDecide, 40),
			row("http/sqlite/4", opDecide, 39),
			{Name: "http/sqlite/16", Operation: opDecide},
		}},
		Paced: []pacedResult{
			{Database: onSQLite, Sides: map[string]pacedSide{sideHTTP: {P99: 20e6}, sideRawSQL: {P99: 30e6}}},
			{Database: onPostgres, Sides: map[string]pacedSide{sideHTTP: {P99: 20e6 + 1}}},
		},
		Streams: []streamResult{
			{Database: onSQLite, Streams: 10, Resident: [2]int64{kib, 401 * kib}, DelayP99: 200e6},
			{Database: onPostgres, Streams: 10, Resident: [2]int64{kib, kib}, Heap: [2]int64{0, 401 * kib}, DelayP99: 200e6 + 1},
		},
		Overloads: []overloadResult{
			{Database: onSQLite, RefusedP99: 50e6, Rounds: []overloadRound{{Capacity: 10, Good: 8, Refused: 100, Lasted: time.Second, Recovered: 5 * time.Second}}},
			{Database: onPostgres, RefusedP99: 50e6 + 1, Rounds: []overloadRound{{Capacity: 10, Good: 8, Refused: 1, Failed: 1, Lasted: time.Second, Recovered: 5*time.Second + 1}}},
		},
	}
	const goodput = "at least 80 % of its capacity in starts at 5 times that load, and no failures other than rejections"
	const heard = "with 10 streams, 99 % of followers of a run receive a decision within 200 ms"
	const p99 = ": p99 of a decision at most 20 ms at 40 % of raw SQL's rate, and none rejected"
	wantVerdicts(t, report.judge(false), map[string]string{
		"http/sqlite/1, decide: at least 40 % of raw SQL":  "met",
		"http/sqlite/4, decide: at least 40 % of raw SQL":  "**NOT met**",
		"http/sqlite/16, decide: at least 40 % of raw SQL": "not judged",
		"http/sqlite/paced" + p99:                          "met", "http/postgres/paced" + p99: "**NOT met**",
		"http/sqlite: 99 % of rejections within 50 ms": "met", "http/postgres: 99 % of rejections within 50 ms": "**NOT met**",
		"http/sqlite: at most 40 KiB for each of 10 idle event streams":   "met",
		"http/postgres: at most 40 KiB for each of 10 idle event streams": "**NOT met**",
		"http/sqlite: " + goodput:   "met",
		"http/postgres: " + goodput: "**NOT met**",
		"http/sqlite: " + heard:     "met", "http/postgres: " + heard: "**NOT met**",
		"http/sqlite: a later request is served within 5 s": "met", "http/postgres: a later request is served within 5 s": "**NOT met**",
	})
	if verdicts := report.judge(false); len(verdicts) != 15 {
		t.Errorf("%d verdicts, want 15: starts are not judged", len(verdicts))
	}
	report.Overloads[0].Rounds[0].Good, report.Paced[0].Refused = 7, 1
	wantVerdicts(t, report.judge(false), map[string]string{"http/sqlite: " + goodput: "**NOT met**", "http/sqlite/paced" + p99: "**NOT met**"})
	if verdicts := report.judge(true); len(verdicts) != 0 {
		t.Errorf("a quick run was judged: %v", verdicts)
	}
}
