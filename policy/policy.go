package policy

import (
	"context"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/policy"
)

// Config has what the rules can use besides the action: req.account, req.environment, req.requester
// and the time. The zero value leaves the first three empty and uses time.Now.
type Config struct {
	Account, Environment string
	// Requester returns the person for whom the action is done; nil for none.
	Requester func(context.Context) string
	// Now is the clock.
	Now func() time.Time
}

// Load loads a rule file. A file with any mistake is not loaded; the error lists every mistake with
// its line. The file name is only for messages. Rules with limits fail: they need a server, which
// counts.
func Load(file string, src []byte, config Config) (fermata.Policy, error) {
	set, err := policy.Load(file, src, policy.Options{})
	if err != nil {
		return nil, err
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &policy.Hook{Rules: set, FillInput: func(ctx context.Context, _ fermata.ActionRequest, in *policy.Input) error {
		in.Account, in.Environment, in.At = config.Account, config.Environment, config.Now()
		if config.Requester != nil {
			in.Requester = config.Requester(ctx)
		}
		return nil
	}}, nil
}
