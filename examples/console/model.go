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

// The models that -model can name.
const (
	modelScript    = "script"
	modelAnthropic = "anthropic"
	modelOpenAI    = "openai"
)

// What a service is asked for if -model names none of its models.
const (
	defaultAnthropic = "claude-sonnet-5"
	defaultOpenAI    = "gpt-5-mini"
)

// modelFlagError says that -model and -url do not fit together.
type modelFlagError struct{ text string }

func (e *modelFlagError) Error() string { return e.text }

// chooseModel returns what makes the models of an example: a real one for all of its agents, or scripts.
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
		return nil, &modelFlagError{fmt.Sprintf("-model %s: it is script, anthropic[/NAME] or openai[/NAME]", c.model)}
	}
	if err != nil {
		return nil, err
	}
	return func([]script.Line) agent.Model { return real }, nil
}

// byEnvironment is the service that there is a key for.
func byEnvironment(getenv func(string) string) string {
	switch {
	case getenv("ANTHROPIC_API_KEY") != "":
		return modelAnthropic
	case getenv("OPENAI_API_KEY") != "":
		return modelOpenAI
	}
	return modelScript
}

// Reply is a line of a script that answers with a text to what was said last: the result of a tool, mostly.
func Reply(text func(last agent.Message) string) script.Line {
	return func(request *agent.Request) (agent.Message, error) {
		return agent.Assistant(text(request.Messages[len(request.Messages)-1])), nil
	}
}
