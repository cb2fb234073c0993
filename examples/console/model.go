package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/anthropic"
	"github.com/fermata-go/fermata/agent/openai"
	"github.com/fermata-go/fermata/agent/script"
)

// The values of -model.
const (
	modelScript    = "script"
	modelAnthropic = "anthropic"
	modelOpenAI    = "openai"
)

// The default models of the services.
const (
	defaultAnthropic = "claude-sonnet-5"
	defaultOpenAI    = "gpt-5-mini"
)

// modelFlagError reports an invalid combination of -model and -url.
type modelFlagError struct{ text string }

func (e *modelFlagError) Error() string { return e.text }

// chooseModel returns the constructor of an example's models: a real one for all of its agents, or
// scripts.
func chooseModel(c *config, getenv func(string) string) (func([]script.Line) agent.Model, error) {
	service, name, _ := strings.Cut(c.model, "/")
	if service == "" {
		if c.url != "" {
			return nil, &modelFlagError{"-url needs -model openai/NAME or -model anthropic/NAME"}
		}
		service = byEnvironment(getenv)
	}
	var real agent.Model
	var err error
	switch service {
	case modelScript:
		if name != "" || c.url != "" {
			return nil, &modelFlagError{"the scripted model has no name and no URL"}
		}
		return func(lines []script.Line) agent.Model { return script.New(lines...) }, nil
	case modelAnthropic:
		real, err = anthropic.New(anthropic.Config{Model: cmp.Or(name, defaultAnthropic), BaseURL: c.url})
	case modelOpenAI:
		real, err = openai.New(openai.Config{Model: cmp.Or(name, defaultOpenAI), BaseURL: c.url})
	default:
		return nil, &modelFlagError{fmt.Sprintf("-model %s: use script, anthropic[/NAME] or openai[/NAME]", c.model)}
	}
	if err != nil {
		return nil, err
	}
	return func([]script.Line) agent.Model { return real }, nil
}

// byEnvironment returns the service with an API key in the environment.
func byEnvironment(getenv func(string) string) string {
	switch {
	case getenv("ANTHROPIC_API_KEY") != "":
		return modelAnthropic
	case getenv("OPENAI_API_KEY") != "":
		return modelOpenAI
	}
	return modelScript
}

// Reply returns a script line that answers based on the last message, usually a tool result.
func Reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
