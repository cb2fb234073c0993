package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/golden"
)

func TestGraphs_ListedAndDrawn(t *testing.T) {
	call := startDemo(t, t.TempDir())
	if code, _, errOut := call("run", "inproc:content-review", `{"topic":"tea"}`, "--key", "article-7"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	_, picture, _ := call("graphs", "--run", "article-7", "--as", "svg")
	golden.Compare(t, "../docs/content-review.svg", picture) // the documentation shows it
	for what, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"all of them":       {[]string{"graphs"}, cli.ExitOK, "inproc:content-review"},
		"one":               {[]string{"graphs", "inproc:content-review"}, cli.ExitOK, "human_review → "},
		"where a run waits": {[]string{"graphs", "--run", "article-7"}, cli.ExitOK, "human_review (waits) → "},
		"to look at":        {[]string{"graphs", "--run", "article-7", "--as", "svg"}, cli.ExitOK, "which waits at human_review"},
		"for a document":    {[]string{"graphs", "inproc:content-review", "--as", "mermaid"}, cli.ExitOK, "flowchart TD\n"},
		"no such graph":     {[]string{"graphs", "inproc:nothing"}, cli.ExitNotFound, "Try: fermata graphs"},
		"no such run":       {[]string{"graphs", "--run", "nothing"}, cli.ExitNotFound, "fermata runs"},
		"an empty graph":    {[]string{"graphs", ""}, cli.ExitUsage, "empty"},
		"an empty run":      {[]string{"graphs", "--run", ""}, cli.ExitUsage, "empty"},
		"two forms":         {[]string{"graphs", "--run", "article-7", "--as", "svg", "--json"}, cli.ExitUsage, "--json"},
		"nothing to draw":   {[]string{"graphs", "external:request"}, cli.ExitOK, "no drawing available"},
		"nothing to render": {[]string{"graphs", "external:request", "--as", "svg"}, cli.ExitNotFound, "no drawing available"},
		"both":              {[]string{"graphs", "inproc:content-review", "--run", "article-7"}, cli.ExitUsage, "either"},
		"a picture of all":  {[]string{"graphs", "--as", "svg"}, cli.ExitUsage, "needs a graph"},
		"an unknown format": {[]string{"graphs", "inproc:content-review", "--as", "png"}, cli.ExitUsage, "text"},
	} {
		if exit, out, errOut := call(c.args...); exit != c.exit || !strings.Contains(out+errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, exit, out, errOut)
		}
	}
	var list []api.Graph
	if _, out, _ := call("graphs", "--json"); json.Unmarshal([]byte(out), &list) != nil || len(list) < 2 || list[0].Drawing != nil {
		t.Errorf("%s", out)
	}
	var one api.Graph
	if _, out, _ := call("graphs", "--run", "article-7", "--json"); json.Unmarshal([]byte(out), &one) != nil || one.Drawing == nil || one.ID != "inproc:content-review" {
		t.Errorf("%s", out)
	}
}
