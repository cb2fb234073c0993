//go:build unix

package peers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/claudetest"
)

// orders is in how many orders three people answer three parallel calls of one run.
const orders = 5

// approvers answer a request from three channels. The arguments of the answer are edited.
func (s *server) approvers(b *browser) []func(t testing.TB, request api.Request, args string) {
	return []func(testing.TB, api.Request, string){
		func(t testing.TB, request api.Request, args string) {
			var edited struct {
				N    int
				Note string
			}
			if err := json.Unmarshal([]byte(args), &edited); err != nil {
				t.Fatal(err)
			}
			b.submit(request.ID, "edit", map[string]string{"/n": fmt.Sprint(edited.N), "/note": edited.Note})
		},
		func(t testing.TB, request api.Request, args string) {
			s.on(t).must("bob", "approve", request.ID, "--args", args)
		},
		func(t testing.TB, request api.Request, args string) {
			s.on(t).decideAs("eve", request, `{"verb":"approve","args":`+args+`}`)
		},
	}
}

// argsOf returns the arguments that a request shows.
func argsOf(t testing.TB, request api.Request) (n int) {
	t.Helper()
	var asked struct{ Args struct{ N int } }
	if err := json.Unmarshal(request.Data, &asked); err != nil {
		t.Fatal(err)
	}
	return asked.Args.N
}

// edited is the arguments that an approver chooses for the call n.
func edited(n int) string { return fmt.Sprintf(`{"n":%d,"note":"edited"}`, n+100) }

// Three people decide three parallel calls of LangGraph's middleware in any order, in the inbox, on
// the command line and through the API: LangGraph gets one answer, and each call its arguments.
func TestParallel_LangGraphGetsOneAnswerWithEachValueAtItsAddress(t *testing.T) {
	t.Parallel()
	peer := newLangGraph(t)
	s := newServer(t, peer.settings("tools")...)
	people := s.approvers(s.signIn("ann-in-browser"))
	for round := range orders {
		key, first := fmt.Sprint("order-", round), 1000*(round+1)
		var calls []string
		for n := range people {
			calls = append(calls, fmt.Sprintf(`{"name":"pay","args":{"n":%d,"note":"draft"}}`, first+n))
		}
		before := peer.runs()
		s.must("bot", "run", "langgraph:tools", `{"calls":[`+strings.Join(calls, ",")+`]}`, "--key", key)
		requests := s.openOf(key, len(people))
		answerers := rand.Perm(len(people))
		for n, i := range rand.Perm(len(requests)) {
			if n == len(requests)-1 && peer.runs() != before+1 {
				t.Fatalf("LangGraph was called before the last answer")
			}
			people[answerers[n]](t, requests[i], edited(argsOf(t, requests[i])))
		}
		done, ok := s.ended(key).Outcome.(fermata.Completed)
		var output struct {
			Results []struct{ Args struct{ N int } }
		}
		if !ok || json.Unmarshal(done.Output, &output) != nil || len(output.Results) != len(people) {
			t.Fatalf("it ended with %s", done.Output)
		}
		for n, result := range output.Results {
			if want := first + n + 100; result.Args.N != want || peer.work.count(fmt.Sprint("pay-", want)) != 1 {
				t.Errorf("call %d ran with %+v, %d times", n, result.Args, peer.work.count(fmt.Sprint("pay-", want)))
			}
		}
		if calls := peer.runs() - before; calls != 2 {
			t.Errorf("LangGraph was called %d times, not once for the start and once for the answers", calls)
		}
	}
}

// runs returns how many runs the threads of the server have.
func (l *langGraph) runs() (n int) {
	l.Helper()
	for _, thread := range l.threads() {
		var runs []json.RawMessage
		l.call("GET", "/threads/"+thread+"/runs?limit=100", "", &runs)
		n += len(runs)
	}
	return n
}

// The CLI forgets all but one of several calls of a message that wait, so the provider asks about
// one, and the model makes the others again: three people decide one after the other, each answer
// is one call of the CLI, and each call gets its arguments.
func TestParallel_ClaudeAsksAboutOneCallAtATime(t *testing.T) {
	t.Parallel()
	cli := newClaude(t, threeCalls)
	s := newServer(t, cli.settings("  - {name: pay, ask: [mcp__work__pay], mcpServers: TOOLS}\n")...)
	people := s.approvers(s.signIn("ann-in-browser"))
	for round := range orders {
		key := fmt.Sprint("order-", round)
		first := 1000 * (round + 1)
		s.must("bot", "run", "claude:pay", fmt.Sprintf(`{"prompt":"pay %d"}`, first), "--key", key)
		var asked []int
		for n, who := range rand.Perm(len(people)) {
			request := s.reviewed(key, n+1)
			asked = append(asked, argsOf(t, request))
			people[who](t, request, edited(asked[n]))
		}
		if end := s.ended(key); end.Status != "completed" {
			t.Fatalf("it is %s: %+v", end.Status, end.Problem)
		}
		slices.Sort(asked)
		if !slices.Equal(asked, []int{first, first + 1, first + 2}) {
			t.Errorf("it asked about %v", asked)
		}
		for n := range people {
			if want := first + n + 100; cli.work.count(fmt.Sprint("pay-", want)) != 1 || cli.work.count(fmt.Sprint("pay-", want-100)) != 0 {
				t.Errorf("call %d ran %d times as edited", n, cli.work.count(fmt.Sprint("pay-", want)))
			}
		}
	}
}

// threeCalls is a model with three calls in one message. It repeats those that were not made.
func threeCalls(c claudetest.Conversation) []claudetest.Block {
	words := strings.Fields(c.Prompt)
	var first int
	if at := slices.Index(words, "pay"); at >= 0 && at+1 < len(words) {
		_, _ = fmt.Sscan(words[at+1], &first)
	}
	var calls []claudetest.Block
	for n := range 3 {
		done := slices.ContainsFunc(c.Results, func(r claudetest.Result) bool {
			return strings.Contains(r.Text, fmt.Sprintf("pay %d done", first+n+100))
		})
		if !done {
			calls = append(calls, claudetest.Call("mcp__work__pay", map[string]any{"n": first + n, "note": "draft"}))
		}
	}
	if len(calls) == 0 {
		return []claudetest.Block{claudetest.Text("all are paid")}
	}
	return calls
}

// openOf waits until a run has n open requests.
func (s *server) openOf(key string, n int) (open []api.Request) {
	s.Helper()
	s.until(fmt.Sprintf("%d requests of %s", n, key), func() (bool, error) {
		view, err := s.as("ops").Run(s.Context(), key)
		open = slices.DeleteFunc(view.Requests, func(r api.Request) bool { return r.State != "pending" })
		return len(open) == n, err
	})
	return open
}
