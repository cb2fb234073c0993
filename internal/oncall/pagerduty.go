package oncall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// PagerDutyConfig configures a schedule of PagerDuty.
type PagerDutyConfig struct {
	// Schedule is the id of the schedule, Token a token of the REST API that may read it.
	Schedule, Token string
	// People maps e-mail addresses of PagerDuty to people. An address without an entry is used as
	// it is.
	People map[string]string
	// URL is the address of the REST API. Defaults to https://api.pagerduty.com.
	URL string
	// Refresh is how long an answer is used. Defaults to one minute.
	Refresh time.Duration
	// Client calls the API. Defaults to http.DefaultClient.
	Client *http.Client
	// Now is the clock of the refresh. Defaults to time.Now.
	Now func() time.Time
}

// PagerDuty is a schedule of PagerDuty.
type PagerDuty struct {
	config PagerDutyConfig

	mu     sync.Mutex
	people []string
	at     time.Time // the time that people is for
	read   time.Time
}

// NewPagerDuty returns a schedule. It calls nothing.
func NewPagerDuty(config PagerDutyConfig) (*PagerDuty, error) {
	if config.Schedule == "" || config.Token == "" {
		return nil, errors.New("oncall: PagerDuty needs a schedule and a token")
	}
	config.URL, config.Refresh, config.Client = cmp.Or(config.URL, "https://api.pagerduty.com"), cmp.Or(config.Refresh, time.Minute), cmp.Or(config.Client, http.DefaultClient)
	if config.Now == nil {
		config.Now = time.Now
	}
	return &PagerDuty{config: config}, nil
}

// OnCall asks PagerDuty who is on call.
func (p *PagerDuty) OnCall(ctx context.Context, at time.Time) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	if !p.read.IsZero() && now.Sub(p.read) < p.config.Refresh && at.Sub(p.at).Abs() < p.config.Refresh {
		return p.people, nil
	}
	people, err := p.ask(ctx, at)
	if err != nil {
		return nil, err
	}
	p.people, p.at, p.read = people, at, now
	return people, nil
}

func (p *PagerDuty) ask(ctx context.Context, at time.Time) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	query := url.Values{
		"schedule_ids[]": {p.config.Schedule}, "include[]": {"users"}, "limit": {"100"},
		"since": {at.UTC().Format(time.RFC3339)}, "until": {at.UTC().Add(time.Second).Format(time.RFC3339)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.config.URL, "/")+"/oncalls?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("oncall: PagerDuty: %w", err)
	}
	request.Header.Set("Authorization", "Token token="+p.config.Token)
	request.Header.Set("Accept", "application/vnd.pagerduty+json;version=2")
	response, err := p.config.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("oncall: PagerDuty: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("oncall: PagerDuty answered %d for schedule %s", response.StatusCode, p.config.Schedule)
	}
	var answer struct {
		OnCalls []struct {
			User struct {
				Email string `json:"email"`
			} `json:"user"`
		} `json:"oncalls"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxCalendar)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("oncall: the answer of PagerDuty cannot be read: %w", err)
	}
	var people []string
	for _, one := range answer.OnCalls {
		people = append(people, person(one.User.Email, p.config.People))
	}
	return unique(people), nil
}
