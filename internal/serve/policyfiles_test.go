package serve

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/server"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	someGroups = "groups: {dba: [ann, bob]}\n"
	someRules  = "default: allow\nrules:\n- {id: drop, when: 'req.tool == \"drop\"', then: ask, ask: {groups: [{from: [\"group:dba\"]}], deadline: 1h}}\n"
	someRoutes = "routes:\n- {name: db, steps: [{at: 0s, notify: [inbox]}, {at: 1h, expire: stale}]}\n"
)

func TestPolicyFiles_AreLoaded(t *testing.T) {
	c := config.Desk{
		PolicyFile: write(t, "policy.yaml", someRules), GroupsFile: write(t, "groups.yaml", someGroups), RoutesFile: write(t, "routes.yaml", someRoutes),
		Environment: "prod", TimeZone: "Europe/Zurich", KeepRulings: true,
	}
	files, d, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{})
	if err != nil {
		t.Fatal(err)
	}
	if in, err := d.Directory.Member("group:dba", "ann"); err != nil || !in {
		t.Errorf("ann: %v, %v", in, err)
	}
	if len(d.Routes) != 1 || len(d.Policy.Current().Rules()) != 1 || d.Zone.String() != "Europe/Zurich" || d.Environment != "prod" || d.DiscardRulings {
		t.Errorf("%+v", d)
	}
	c.KeepRulings = false
	if _, quiet, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{}); err != nil || !quiet.DiscardRulings {
		t.Errorf("rulings are kept: %v", err)
	}
	// Changes on disk are in force after the next reload; broken files change nothing.
	before := d.Policy.Current().Digest()
	if err := os.WriteFile(c.PolicyFile, []byte("default: maybe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := files.rules.Reload(t.Context()); err == nil || d.Policy.Current().Digest() != before {
		t.Errorf("a broken policy: %v", err)
	}
	if err := os.WriteFile(c.GroupsFile, []byte("groups: {dba: [eve]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.groups.load(); err != nil {
		t.Fatal(err)
	}
	if in, _ := d.Directory.Member("group:dba", "ann"); in {
		t.Error("ann has left, but is still a member")
	}
}

// The last dba leaves. The groups apply, and it is logged that no person can approve: otherwise
// every request would expire, and the server would not restart.
func TestPolicyFiles_UnsatisfiableRequirementIsLogged(t *testing.T) {
	c := config.Desk{PolicyFile: write(t, "policy.yaml", someRules), GroupsFile: write(t, "groups.yaml", someGroups)}
	files, d, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ groups, want string }{
		{someGroups, ""}, {"groups: {dba: []}\n", "group:dba has no members"}, {"groups: {dba: []}\n", "group:dba has no members"}, {"groups: {ops: [ann]}\n", "unknown name group:dba"}, {someGroups, ""},
	} {
		if err := os.WriteFile(c.GroupsFile, []byte(step.groups), 0o600); err != nil {
			t.Fatal(err)
		}
		broken, misfit := files.reload(t.Context(), slog.New(slog.DiscardHandler))
		if broken != nil || (misfit == nil) != (step.want == "") || misfit != nil && !strings.Contains(misfit.Error(), step.want) {
			t.Errorf("%q: %v, %v", step.groups, broken, misfit)
		}
		if in, _ := d.Directory.Member("group:dba", "ann"); in != (step.groups == someGroups) {
			t.Errorf("%q: ann counts: %v", step.groups, in)
		}
	}
}

// A stricter rule contains an error, so the previous one applies. The metrics must show that.
func TestPolicyFiles_StatusIsInMetrics(t *testing.T) {
	c := config.Desk{PolicyFile: write(t, "policy.yaml", someRules), GroupsFile: write(t, "groups.yaml", someGroups)}
	files, _, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		file, text string
		want       server.PolicyStatus
	}{
		{c.PolicyFile, someRules, server.PolicyStatus{}},
		{c.PolicyFile, "default: maybe\n", server.PolicyStatus{Rejected: true}},
		{c.PolicyFile, someRules, server.PolicyStatus{}},
		{c.GroupsFile, "groups: {dba: []}\n", server.PolicyStatus{Unsatisfiable: true}},
		{c.GroupsFile, someGroups, server.PolicyStatus{}},
	} {
		if err := os.WriteFile(step.file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			go files.watch(ctx, slog.New(slog.DiscardHandler))
			time.Sleep(reloadInterval + time.Second)
			end()
			synctest.Wait()
		})
		if got := files.Status(); got != step.want {
			t.Errorf("%q: %+v, want %+v", step.text, got, step.want)
		}
	}
}

// A policy file defines its time zone. A server without a setting must not override it.
func TestPolicyFiles_TimeZoneIsApplied(t *testing.T) {
	c := config.Default().Desk
	c.PolicyFile = write(t, "policy.yaml", "time_zone: Europe/Zurich\ndefault: allow\nrules:\n- {id: night, when: local.hour < 7, then: deny}\n")
	_, d, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Zone != nil {
		t.Errorf("the rules use the time zone %s", d.Zone)
	}
}

// A policy that would prevent a start is also rejected while the server runs.
func TestPolicyFiles_NewPolicyIsCheckedAgainstRoutes(t *testing.T) {
	c := config.Desk{PolicyFile: write(t, "policy.yaml", someRules), GroupsFile: write(t, "groups.yaml", someGroups), RoutesFile: write(t, "routes.yaml", someRoutes)}
	files, d, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{})
	if err != nil {
		t.Fatal(err)
	}
	before := d.Policy.Current().Digest()
	for name, text := range map[string]string{
		"of a rule":       strings.Replace(someRules, "deadline: 1h", "deadline: 1h, route: bd", 1),
		"in the defaults": "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, route: bd}}\n",
	} {
		if err := os.WriteFile(c.PolicyFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := files.rules.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), `unknown route "bd"; did you mean "db"?`) || d.Policy.Current().Digest() != before {
			t.Errorf("missing route, %s: %v", name, err)
		}
	}
}

func TestPolicyFiles_ErrorsNameTheFile(t *testing.T) {
	groups, policy := write(t, "groups.yaml", someGroups), write(t, "policy.yaml", someRules)
	for name, c := range map[string]struct {
		settings config.Desk
		want     string
	}{
		"no such file":    {config.Desk{PolicyFile: "nowhere.yaml"}, "desk.policyFile: open nowhere.yaml"},
		"unknown group":   {config.Desk{PolicyFile: policy}, "unknown name group:dba"},
		"unknown route":   {config.Desk{GroupsFile: groups, PolicyFile: write(t, "p", strings.Replace(someRules, "deadline: 1h", "deadline: 1h, route: db", 1))}, `rule "drop": ask.route: unknown route "db"`},
		"broken routes":   {config.Desk{RoutesFile: write(t, "r", "routes: []\n")}, "desk.routesFile"},
		"unknown key":     {config.Desk{GroupsFile: write(t, "g", "group: {}\n")}, `g:1: group: unknown key; did you mean "groups"?`},
		"an empty file":   {config.Desk{GroupsFile: write(t, "g4", "# later\n")}, "g4:1: the file is empty"},
		"empty name":      {config.Desk{GroupsFile: write(t, "g2", "groups: {dba: [\"\"]}\n")}, "empty name"},
		"no time zone":    {config.Desk{TimeZone: "Nowhere"}, `unknown time zone "Nowhere"`},
		"local zone":      {config.Desk{TimeZone: "Local"}, `unknown time zone "Local"`},
		"two documents":   {config.Desk{GroupsFile: write(t, "g3", someGroups+"---\n"+someGroups)}, "a second document"},
		"a broken policy": {config.Desk{PolicyFile: write(t, "p2", "default: maybe\n")}, "desk.policyFile"},
	} {
		if _, _, err := openPolicyFiles(t.Context(), &config.Config{Desk: c.settings}, desk.Channels{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPolicyFiles_RoutesAreReloaded(t *testing.T) {
	rules := strings.Replace(someRules, "deadline: 1h", "deadline: 1h, route: db", 1)
	c := config.Desk{PolicyFile: write(t, "policy.yaml", rules), GroupsFile: write(t, "groups.yaml", someGroups), RoutesFile: write(t, "routes.yaml", someRoutes)}
	files, d, err := openPolicyFiles(t.Context(), &config.Config{Desk: c}, desk.Channels{All: true})
	if err != nil {
		t.Fatal(err)
	}
	both := someRoutes + "- {name: web, steps: [{at: 0s, notify: [inbox]}, {at: 2h, expire: stale}]}\n"
	for _, step := range []struct {
		file, text string
		broken     string
		routes     int
	}{
		{c.RoutesFile, both, "", 2},
		{c.PolicyFile, strings.Replace(rules, "route: db", "route: web", 1), "", 2}, // a route that is new
		{c.RoutesFile, someRoutes, "web", 2},                                        // the policy names web
		{c.RoutesFile, "routes: 1\n", "routes.yaml", 2},
		{c.PolicyFile, rules, "routes.yaml", 2},
		{c.RoutesFile, someRoutes, "", 1},
	} {
		if err := os.WriteFile(step.file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		broken, misfit := files.reload(t.Context(), slog.New(slog.DiscardHandler))
		if misfit != nil || (broken == nil) != (step.broken == "") || broken != nil && !strings.Contains(broken.Error(), step.broken) {
			t.Errorf("%q: %v, %v", step.text, broken, misfit)
		}
		if got := len(d.CurrentRoutes()); got != step.routes {
			t.Errorf("%q: %d routes, want %d", step.text, got, step.routes)
		}
	}
}
