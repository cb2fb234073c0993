package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/claudetest"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// support is a server with the assistants of docs/assistants.md, and the services that they call.
type support struct {
	*testing.T
	*shop
	server *serve.Server
	logged *syncBuffer
	dir    string
}

var exampleFile = regexp.MustCompile("(?s)<!-- example: (\\S+) -->\n```yaml\n(.*?)```")

// writeExample writes the files of the document into a new working directory, with services of the
// test instead of public ones. With all, the model of both assistants is one of Anthropic.
func writeExample(t *testing.T, s *shop, all bool, replace ...string) (dir string) {
	t.Helper()
	text, err := os.ReadFile("../docs/assistants.md")
	if err != nil {
		t.Fatal(err)
	}
	messages := claudetest.NewModel(t, messagesScript)
	key, err := os.ReadFile(messages.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"openai.key": chatModelKey + "\n", "shop.token": shopToken + "\n", "anthropic.key": string(key), "writer.md": "You rewrite texts."}
	for _, found := range exampleFile.FindAllStringSubmatch(string(text), -1) {
		files[found[1]] = found[2]
	}
	changes := []string{
		"https://shop.example.com", s.url, "https://models.example.com/v1", newChatModel(t).url + "/v1", "provider: anthropic,", "provider: anthropic, baseURL: \"" + messages.URL + "\",",
		"  title: ", "  allow: [127.0.0.1]\n  title: ",
	}
	if all {
		changes = append([]string{"provider: openai ", "provider: anthropic ", "https://models.example.com/v1", messages.URL, "openai.key", "anthropic.key"}, changes...)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(files["fermata.yaml"], changes[i]) && !all {
			t.Errorf("the example does not have %q", changes[i])
		}
	}
	files["fermata.yaml"] = strings.NewReplacer(append(replace, changes...)...).Replace(files["fermata.yaml"])
	t.Chdir(t.TempDir())
	if dir, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Clean(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func startSupport(t *testing.T, all bool, replace ...string) *support {
	t.Helper()
	s := &support{T: t, shop: newShop(t)}
	s.dir = writeExample(t, s.shop, all, replace...)
	c, err := config.Load(config.Source{File: "fermata.yaml", Flags: map[string]string{"listen.addr": "127.0.0.1:0", "metrics.addr": config.Off}})
	if err != nil {
		t.Fatal(err)
	}
	p := &serve.Program{Program: new(cli.Program)}
	if err := p.TryStart(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.server, s.logged = startProgram(t, c, p)
	return s
}

// as returns a client of a person.
func (s *support) as(person string, role authn.Role) *client.Client {
	s.Helper()
	c, err := client.New(s.server.URL, keyOf(s.T, s.server, person, role))
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// awaiting polls until a condition holds.
func awaiting(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		if err := cli.Sleep(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// begin starts a conversation with a message.
func begin(t *testing.T, c *client.Client, id, text string) {
	t.Helper()
	_, err := c.CreateConversation(t.Context(), api.CreateConversation{ID: id})
	if err == nil {
		_, err = c.SendMessage(t.Context(), id, api.SendMessage{Text: text})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answer waits for the answer of the assistant.
func answer(t *testing.T, c *client.Client, id string) (text string) {
	t.Helper()
	awaiting(t, "an answer in "+id, func() bool {
		r, err := c.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		last := r.Lines[len(r.Lines)-1]
		text = last.Text
		return last.From != dialog.ByUser
	})
	return text
}

// request waits for the only open request.
func request(t *testing.T, c *client.Client, kind string) (r api.Request) {
	t.Helper()
	awaiting(t, "a request of the kind "+kind, func() bool {
		page, err := c.Requests(t.Context(), client.Query{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 0 {
			return false
		}
		r = page.Items[0]
		return true
	})
	return r
}

func decide(t *testing.T, c *client.Client, request, answer string) {
	t.Helper()
	if _, err := c.Decide(t.Context(), request, api.Decide{Answer: json.RawMessage(answer)}); err != nil {
		t.Fatal(err)
	}
}

// The example of the document: reads run at once, a refund waits for an approver, and the shop is
// called once with exactly the approved arguments. The answer is streamed.
func TestAssistants_ApprovedCallHappensOnce(t *testing.T) {
	s := startSupport(t, false)
	ada, bob := s.as("ada", authn.RoleUser), s.as("bob", authn.RoleApprover)
	list, err := ada.Assistants(t.Context())
	if err != nil || len(list.Items) != 2 || list.Items[0].ID != "support" || list.Items[1].Title != "Writer" {
		t.Fatalf("%+v, %v", list, err)
	}
	begin(t, ada, "c1", "Refund 30 € of order A-17, it was scratched.")
	var r dialog.Record
	awaiting(t, "the approval", func() bool {
		if r, err = ada.Conversation(t.Context(), "c1"); err != nil {
			t.Fatal(err)
		}
		return r.Runs[0].Held
	})
	if r.Assistant != "support" || len(r.Lines) != 1 {
		t.Errorf("%+v", r)
	}
	if made := s.made(); !slices.Equal(made, []string{`GET /orders/A-17 true `}) {
		t.Fatalf("before the approval: %q", made)
	}
	tokens := s.tokens(r.Runs[0].Run)
	asked := request(t, bob, "approval")
	if text := string(asked.Data); !strings.Contains(text, `"action":"refund"`) || !strings.Contains(text, `"args":{"order":"A-17","euros":30.00,"reason":"scratched"}`) {
		t.Errorf("the approver sees %s", text)
	}
	if _, err := bob.Act(t.Context(), asked.ID, "clarify", api.RequestAction{Text: "Why?"}); err != nil {
		t.Fatal(err)
	}
	awaiting(t, "the reply of the model", func() bool {
		if asked, err = bob.Request(t.Context(), asked.ID); err != nil {
			t.Fatal(err)
		}
		reply := asked.Activity.Clarifications[0].Reply
		return reply != nil && reply.Text == "It was scratched."
	})
	if _, err := bob.Decide(t.Context(), asked.ID, api.Decide{Answer: json.RawMessage(`{"verb":"approve"}`), Shown: asked.Shown}); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, ada, "c1"); got != "The shop says: refund R-1 is done, authorized by (secret)" {
		t.Errorf("the answer is %q", got)
	}
	if made := s.made(); !slices.Equal(made, []string{`GET /orders/A-17 true `, `POST /orders/A-17/refunds true {"euros":30.00,"reason":"scratched"}`}) || s.keys[0] == "" {
		t.Errorf("the shop got %q with the keys %q", made, s.keys)
	}
	if parts := <-tokens; len(parts) < 5 || strings.Join(parts, "") != "The shop says: refund R-1 is done, authorized by (secret)" {
		t.Errorf("the text is streamed as %q", parts)
	}
	s.wantNoSecrets()
}

// tokens returns the streamed texts of a run, when it has ended.
func (s *support) tokens(run string) <-chan []string {
	auditor, all, ready := s.as("carl", authn.RoleAuditor), make(chan []string, 1), make(chan struct{})
	go func() {
		var parts []string
		for event, err := range auditor.Events(s.Context(), run, "") {
			if err != nil {
				s.Error(err)
				break
			}
			if len(parts) == 0 && event.Outcome != nil { // the wait for the approval
				select {
				case <-ready:
				default:
					close(ready)
				}
			}
			if event.Token != nil {
				parts = append(parts, event.Token.Text)
			}
		}
		all <- parts
	}()
	<-ready
	return all
}

// wantNoSecrets looks for keys in the log, the settings, the audit log and the conversations.
func (s *support) wantNoSecrets() {
	s.Helper()
	admin := s.as("root", authn.RoleAdmin)
	settings, err := admin.Configuration(s.Context())
	lines, err2 := admin.AuditLines(s.Context(), 0)
	record, err3 := admin.Conversation(s.Context(), "c1")
	if err := errors.Join(err, err2, err3); err != nil {
		s.Fatal(err)
	}
	shown, err := json.Marshal([]any{settings, string(lines), record})
	if err != nil {
		s.Fatal(err)
	}
	for _, secret := range []string{chatModelKey, "token-of-the-shop"} {
		if strings.Contains(string(shown), secret) || strings.Contains(s.logged.String(), secret) {
			s.Errorf("%q is shown or logged", secret)
		}
	}
	if !strings.Contains(string(shown), "[support, writer]") {
		s.Error("the settings do not name the assistants")
	}
}

// The policy and the approvers decide, whatever the service of the model is.
func TestAssistants_DeniedAndAllowedCalls(t *testing.T) {
	s := startSupport(t, true)
	ada, bob := s.as("ada", authn.RoleUser), s.as("bob", authn.RoleApprover)
	begin(t, ada, "large", "Refund 2000 € of order A-17, it was scratched.")
	if got := answer(t, ada, "large"); !strings.Contains(got, "refused") || !strings.Contains(got, "accounting department") {
		t.Errorf("denied by the policy: %q", got)
	}
	begin(t, ada, "rejected", "Refund 500 € of order A-17, it was scratched.")
	decide(t, bob, request(t, bob, "approval").ID, `{"verb":"reject","reason":"only after a return"}`)
	if got := answer(t, ada, "rejected"); !strings.Contains(got, "refused by bob: only after a return") {
		t.Errorf("rejected by a person: %q", got)
	}
	if made := s.made(); slices.ContainsFunc(made, func(call string) bool { return strings.HasPrefix(call, "POST") }) {
		t.Errorf("the shop got %q", made)
	}
	begin(t, ada, "small", "Refund 5 € of order A-17, it was scratched.")
	if got := answer(t, ada, "small"); !strings.Contains(got, "refund R-1 is done") || len(s.keys) != 1 {
		t.Errorf("allowed by the policy: %q", got)
	}
	if _, err := ada.CreateConversation(t.Context(), api.CreateConversation{ID: "w", Assistant: "writer"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ada.SendMessage(t.Context(), "w", api.SendMessage{Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, ada, "w"); got != "none" { // what the model says without tools
		t.Errorf("the writer says %q", got)
	}
	page, err := ada.Conversations(t.Context())
	if err != nil || page.Items[0].Assistant != "writer" || page.Items[1].Assistant != "support" {
		t.Errorf("%+v, %v", page, err)
	}
	_, err = ada.CreateConversation(t.Context(), api.CreateConversation{Assistant: "nobody"})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != http.StatusBadRequest || p.Fields[0].Location != "body.assistant" {
		t.Errorf("an unknown assistant: %v", err)
	}
}

// An endpoint that fails may have done it: a person is asked, and the call is not repeated.
func TestAssistants_FailedCallIsInDoubt(t *testing.T) {
	s := startSupport(t, false)
	ada, bob := s.as("ada", authn.RoleUser), s.as("bob", authn.RoleApprover)
	s.refund = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", http.StatusBadGateway) }
	begin(t, ada, "c1", "Refund 5 € of order A-17, it was scratched.")
	doubt := request(t, bob, "effect-in-doubt")
	if text := string(doubt.Data); !strings.Contains(text, "127.0.0.1 answered 502") || !strings.Contains(text, s.keys[0]) {
		t.Errorf("the request shows %s", text)
	}
	decide(t, bob, doubt.ID, `{"happened":true,"receipt":{"text":"refunded by hand"}}`)
	if got := answer(t, ada, "c1"); got != "The shop says: refunded by hand" || len(s.keys) != 1 {
		t.Errorf("%q after %d calls", got, len(s.keys))
	}
}

// An idempotent endpoint gets the call again, with the same key.
func TestAssistants_IdempotentCallIsRepeated(t *testing.T) {
	s := startSupport(t, false, "    timeout: 10s\n", "    idempotent: true\n")
	ada := s.as("ada", authn.RoleUser)
	s.refund = func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.keys) == 1 {
			http.Error(w, "sorry", http.StatusBadGateway)
		}
	}
	begin(t, ada, "c1", "Refund 5 € of order A-17, it was scratched.")
	if got := answer(t, ada, "c1"); !strings.Contains(got, "The response is empty, with status 200") || len(s.keys) != 2 || s.keys[0] != s.keys[1] {
		t.Errorf("%q with the keys %q", got, s.keys)
	}
}

// process starts the program as a server in its own process, in the working directory.
func process(t *testing.T) (url string, kill func()) {
	t.Helper()
	server := programCommand(t, "serve", "--config", "fermata.yaml", "--addr", "127.0.0.1:0")
	logged, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	t.Cleanup(kill)
	for lines := bufio.NewScanner(logged); lines.Scan(); {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, logged) }() // until it is killed
			return line.URL, kill
		}
		t.Log(lines.Text())
	}
	t.Fatal("the server did not start")
	return "", nil
}

// programCommand returns a command that runs the program.
func programCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), asProgram+"=1", "FERMATA_LOG_FORMAT=json", "FERMATA_METRICS_ADDR=off", "FERMATA_RUNS_LEASE=1s")
	return c
}

// createKey runs fermata keys create.
func createKey(t *testing.T, person, role string) string {
	t.Helper()
	out, err := programCommand(t, "keys", "create", "acme", person, role, "--config", "fermata.yaml").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	return strings.TrimSpace(string(out))
}

// The server is killed while an approval is open, and again during the approved call. The call is
// not repeated: a person says that it has happened.
func TestAssistants_SurviveTheDeathOfTheServer(t *testing.T) {
	s := newShop(t)
	writeExample(t, s, false)
	called := make(chan struct{}, 10)
	s.refund = func(_ http.ResponseWriter, r *http.Request) {
		called <- struct{}{}
		<-r.Context().Done()
	}
	tokens := make(map[string]string)
	var ada, bob *client.Client
	restart := func() (kill func()) {
		t.Helper()
		url, kill := process(t)
		for person, role := range map[string]string{"ada": "user", "bob": "approver"} {
			if tokens[person] == "" {
				tokens[person] = createKey(t, person, role)
			}
		}
		var err, err2 error
		ada, err = client.New(url, tokens["ada"])
		bob, err2 = client.New(url, tokens["bob"])
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return kill
	}
	kill := restart()
	begin(t, ada, "c1", "Refund 30 € of order A-17, it was scratched.")
	asked := request(t, bob, "approval")
	kill()
	kill = restart()
	go func() {
		_, _ = bob.Decide(t.Context(), asked.ID, api.Decide{Answer: json.RawMessage(`{"verb":"approve"}`)})
	}() // the server dies before it answers
	<-called
	kill()
	restart()
	doubt := request(t, bob, "effect-in-doubt")
	decide(t, bob, doubt.ID, `{"happened":true,"receipt":{"text":"refund R-9"}}`)
	if got := answer(t, ada, "c1"); got != "The shop says: refund R-9" {
		t.Errorf("the answer is %q", got)
	}
	if made := s.made(); !slices.Equal(made, []string{`GET /orders/A-17 true `, `POST /orders/A-17/refunds true {"euros":30.00,"reason":"scratched"}`}) {
		t.Errorf("the shop got %q", made)
	}
}

// A server that cannot be reached has done nothing: the call is tried again, then the model is
// told. No person is asked.
func TestAssistants_UnreachableToolIsNotInDoubt(t *testing.T) {
	s := startSupport(t, false, "https://shop.example.com/orders/{order}/refunds", "http://127.0.0.1:1/{order}")
	ada, bob := s.as("ada", authn.RoleUser), s.as("bob", authn.RoleApprover)
	begin(t, ada, "c1", "Refund 5 € of order A-17, it was scratched.")
	if got := answer(t, ada, "c1"); got != "The shop says: refund was not done: 127.0.0.1 was not reached: the connection failed." {
		t.Errorf("the answer is %q", got)
	}
	if page, err := bob.Requests(t.Context(), client.Query{State: "all", Kind: "effect-in-doubt"}); err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// At a limit an approver is asked whether the assistant may continue.
func TestAssistants_LimitAsksAnApprover(t *testing.T) {
	s := startSupport(t, false, "steps: 10", "steps: 1")
	ada, bob := s.as("ada", authn.RoleUser), s.as("bob", authn.RoleApprover)
	begin(t, ada, "c1", "Refund 5 € of order A-17, it was scratched.")
	reached := request(t, bob, "limit-reached")
	if text := string(reached.Data); !strings.Contains(text, `"limit":"model calls","max":1`) || len(s.keys) > 0 {
		t.Errorf("%s, %d refunds", text, len(s.keys))
	}
	decide(t, bob, reached.ID, `{"goOn":true,"more":9}`)
	if got := answer(t, ada, "c1"); !strings.Contains(got, "refund R-1 is done") {
		t.Errorf("the answer is %q", got)
	}
}

// The check of a configuration reads the example, and names the line and the field of a mistake
// without the secrets.
func TestAssistants_ConfigCheck(t *testing.T) {
	writeExample(t, newShop(t), false)
	if code, out, errOut := call(t, "config", "check", "fermata.yaml"); code != cli.ExitOK {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	if err := os.WriteFile("shop.token", []byte("Bearer hush\nX-Other: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := call(t, "config", "check", "fermata.yaml")
	if text := out + errOut; code == cli.ExitOK || !strings.Contains(text, "assistants[0].tools[1].headerFiles.Authorization: it is not a header") || !regexp.MustCompile(`fermata.yaml:\d+: assistants`).MatchString(text) || strings.Contains(text, "hush") {
		t.Errorf("%d: %s", code, text)
	}
}

// The server of the shop speaks for its customers. The customer is the requester; the audit log has
// both.
func TestAssistants_FrontendSpeaksForACustomer(t *testing.T) {
	s := startSupport(t, false)
	customer, bob := s.as("shop", authn.RoleFrontend).ForEndUser("customer-7"), s.as("bob", authn.RoleApprover)
	begin(t, customer, "c1", "Refund 30 € of order A-17, it was scratched.")
	asked := request(t, bob, "approval")
	decide(t, bob, asked.ID, `{"verb":"approve"}`)
	if got := answer(t, customer, "c1"); !strings.Contains(got, "refund R-1 is done") {
		t.Errorf("the answer is %q", got)
	}
	list, err := customer.Conversations(t.Context())
	if err != nil || len(list.Items) != 1 || list.Items[0].User != "customer-7" {
		t.Errorf("%+v, %v", list, err)
	}
	lines, err := s.as("root", authn.RoleAdmin).AuditLines(t.Context(), 0)
	if err != nil || !regexp.MustCompile(`"kind":"run.started","actor":\{"principal":"customer-7","kind":"person","via":"conversation by=shop http/key id=\w+"`).Match(lines) {
		t.Errorf("%v: %s", err, lines)
	}
	if subject, err := bob.Request(t.Context(), asked.ID); err != nil || subject.Activity.Requester != "customer-7" {
		t.Errorf("%+v, %v", subject.Activity, err)
	}
}

// A rejection by the endpoint is for the model. A call that has to wait is made again.
func TestAssistants_AnswersOfTheEndpoint(t *testing.T) {
	s := startSupport(t, false)
	ada := s.as("ada", authn.RoleUser)
	responses := []int{http.StatusTooManyRequests, http.StatusOK, http.StatusUnprocessableEntity}
	s.refund = func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(responses[len(s.keys)-1])
		_, _ = io.WriteString(w, "says the shop")
	}
	for id, want := range []string{"The shop says: says the shop", "The shop says: refund was rejected with status 422. It was not done. says the shop"} {
		id := fmt.Sprint("c", id)
		begin(t, ada, id, "Refund 5 € of order A-17, it was scratched.")
		if got := answer(t, ada, id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if len(s.keys) != 3 || s.keys[0] != s.keys[1] || s.keys[2] == s.keys[0] {
		t.Errorf("the keys are %q", s.keys)
	}
}
