package providertest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/providertest"
)

// broken names the defect of the toy, for a child process.
const broken = "FERMATA_TOY_BROKEN"

func TestToy(t *testing.T) {
	var last store.Store
	providertest.Run(t, providertest.Subject{
		Store: func(*testing.T) store.Store {
			last = memory.NewStore(nil)
			return last
		},
		New: func(_ *testing.T, world *providertest.World) provider.Provider {
			return &toy{world: world, raw: last, broken: os.Getenv(broken), memory: make(map[string]toyState), gone: make(map[string]bool)}
		},
	})
}

// Each part of the suite finds its defect.
func TestRun_NoticesEachWayToBeWrong(t *testing.T) {
	for way, parts := range map[string][]string{
		"a name with a colon":                  {"Names"},
		"takes no answer":                      {"Review"},
		"the ref is in a question":             {"The_same_again"},
		"one id for all rounds":                {"Review_revised"},
		"keeps it in memory":                   {"The_same_again"},
		"does it again":                        {"The_same_again"},
		"anything fits":                        {"I13_wrong_answers"},
		"a look writes":                        {"I13_wrong_answers"},
		"does not say that an answer is wrong": {"I13_wrong_answers"},
		"a lapse is a yes":                     {"I11_expired"},
		"one account for all":                  {"I8_accounts"},
		"one id for all runs":                  {"Many_at_once"},
		"an unknown graph fails":               {"Unknown_graph"},
		"bad input is an error":                {"Bad_input"},
		"the input is in the message":          {"Bad_input"},
		"deletes once":                         {"Delete"},
		"cancelled is failed":                  {"Cancelled"},
		"leaves goroutines behind":             {"Goroutines"},
		"an error is a failure":                {"I14_crash", "I14_pair,_crash", "I4_effect,_crash"},
		"the ref is in an error":               {"I14_crash"},
		"writes without the right to":          {"I16_taken_over_while_it_drafts", "I16_taken_over_while_it_publishes"},
		"asks one after the other":             {"Pair"},
		"one answer for both":                  {"Pair_in_parts"},
		"what is open gets another id":         {"Pair_in_parts"},
		"does without the ledger":              {"I4_effect"},
		"a no is a yes":                        {"I4_effect_rejected"},
		"tries again blindly":                  {"I4_effect,_crash", "I16_effect_taken_over"},
	} {
		for _, part := range parts {
			t.Run(way+", "+part, func(t *testing.T) {
				t.Parallel()
				notices(t, way, part)
			})
		}
	}
}

func notices(t *testing.T, way, part string) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestToy$/^"+part+"$")
	process.Env = append(os.Environ(), broken+"="+way)
	said, err := process.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--- FAIL: TestToy/"+part+" ") {
		t.Errorf("%v:\n%s", err, said)
	}
}
