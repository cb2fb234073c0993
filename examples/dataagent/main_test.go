package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "dataagent", run) }

func TestDataagent(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{{To: "Approve?", Line: "y"}},
		Refusal: []string{"n not before Christmas"},
		Reason:  "The prices are as they were. run_sql was refused by you: not before Christmas",
		Effects: raised,
	})
}

// raised returns how often the prices were raised, according to the database.
func raised(t testing.TB, dir string) (times int) {
	t.Helper()
	shop, err := openShop(filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	var price int
	if err := shop.reader.QueryRow("SELECT price FROM products WHERE name = 'desk lamp'").Scan(&price); err != nil {
		t.Fatal(err)
	}
	for ; price > 3000; price = price * 100 / 110 {
		times++
	}
	return times
}

func newShop(t *testing.T) *Shop {
	t.Helper()
	shop, err := openShop(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shop.Close() })
	return shop
}

func TestShop_AReadCannotWriteWhateverThePolicyTookItFor(t *testing.T) {
	shop := newShop(t)
	if text, err := shop.Read(t.Context(), "DELETE FROM products RETURNING id"); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := shop.Read(t.Context(), "SELECT count(*) AS n FROM products"); text != "n\n3" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_AKeyChangesThingsOnce(t *testing.T) {
	shop := newShop(t)
	for range 2 {
		if text, err := shop.Change(t.Context(), "UPDATE products SET price = price + 1", "k"); text != "Done. Rows changed: 3." || err != nil {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if text, err := shop.Read(t.Context(), "SELECT price FROM products WHERE id = 1"); text != "price\n3001" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_FailedStatementIsRolledBackAndReportedToTheModel(t *testing.T) {
	shop := newShop(t)
	for range 2 { // a failed call does not use up its key
		_, err := shop.Change(t.Context(), "UPDATE products SET cost = 1", "k")
		if err == nil || !strings.Contains(err.Error(), "no such column: cost") {
			t.Errorf("got %v", err)
		}
	}
	if text, err := shop.Read(t.Context(), "SELECT count(*) AS n FROM "+keysTable); text != "n\n0" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestShop_ATableThatWasDroppedStaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	for i := range 2 {
		shop, err := openShop(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shop.Change(t.Context(), "DROP TABLE orders", string(rune('a'+i))); (err == nil) != (i == 0) {
			t.Errorf("drop number %d: %v", i+1, err)
		}
		if err := shop.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
