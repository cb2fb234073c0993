package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/internal/cli"
)

func TestSlowNotice_OnlyForRemoteCommands(t *testing.T) {
	for args, want := range map[string]string{
		"inbox --list --url http://a": "http://a", "approve r1 --url http://b": "http://b", "runs": "http://127.0.0.1:8080", "stats --url http://me:secret@c": "http://me:xxxxx@c", "version": "", "config example": "",
	} {
		parser, err := kong.New(new(commands), kong.Name("fermata"), groups, kong.Exit(func(int) {}), kong.Writers(new(bytes.Buffer), new(bytes.Buffer)))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := cli.ServerOf(parsed); got != want {
			t.Errorf("%s calls %q, want %q", args, got, want)
		}
	}
}
