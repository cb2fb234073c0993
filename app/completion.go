package app

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/internal/cli"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts ask the program itself for completions, so they never get out of date.
var (
	//go:embed completion/fermata.bash
	bashScript string
	//go:embed completion/fermata.zsh
	zshScript string
	//go:embed completion/fermata.fish
	fishScript string
)

// Run prints a script.
func (c *completionCommand) Run(p *cli.Program) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := io.WriteString(p.Out, script)
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the completions of the last word, one per line, with the help text after a tab.
func (c *completeCommand) Run(p *cli.Program) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) > 1 && words[0] == "help" { // the arguments of help are commands
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, s := range suggest(p.Parser.Model.Node, words[:len(words)-1], words[len(words)-1]) {
		fmt.Fprintf(p.Out, "%s\t%s\n", s.word, s.help)
	}
	return nil
}

type suggestion struct{ word, help string }

// suggest follows the words through the commands, and returns what could complete the last one.
func suggest(at *kong.Node, before []string, last string) []suggestion {
	position := 0 // among the arguments of the command
	var open *kong.Flag
	for _, word := range before {
		switch {
		case open != nil:
			open = nil // it was a value
		case strings.HasPrefix(word, "-"):
			if flag := flagOf(at, word); flag != nil && !flag.IsBool() && !strings.Contains(word, "=") {
				open = flag
			}
		default:
			if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				at = at.Children[i]
				continue
			}
			position++
		}
	}
	var all []suggestion
	switch {
	case open != nil:
		all = enums(open.Value)
	case strings.HasPrefix(last, "-"):
		all = flags(at)
	default:
		for _, child := range at.Children {
			if !child.Hidden {
				all = append(all, suggestion{child.Name, child.Help})
			}
		}
		if position < len(at.Positional) {
			all = append(all, enums(at.Positional[position])...)
		}
	}
	return slices.DeleteFunc(all, func(s suggestion) bool { return !strings.HasPrefix(s.word, last) })
}

func flagOf(at *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range at.AllFlags(false) {
		for _, flag := range group {
			if flag.Name == name || string(flag.Short) == name {
				return flag
			}
		}
	}
	return nil
}

func flags(at *kong.Node) []suggestion {
	var all []suggestion
	for _, group := range at.AllFlags(true) {
		for _, flag := range group {
			all = append(all, suggestion{"--" + flag.Name, flag.Help})
		}
	}
	return all
}

func enums(v *kong.Value) []suggestion {
	var all []suggestion
	if v.Enum == "" {
		return nil
	}
	for _, word := range v.EnumSlice() {
		all = append(all, suggestion{word, ""})
	}
	return all
}
