package ops

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Warehouse is a database with one table. It records every statement that changed or copied data.
type Warehouse struct {
	mu         sync.Mutex
	orders     []map[string]string
	statements []string
}

// NewWarehouse returns a warehouse with a few orders.
func NewWarehouse() *Warehouse {
	order := func(customer, archived string) map[string]string {
		return map[string]string{"customer": customer, "archived": archived, "phone": "555-0100"}
	}
	return &Warehouse{orders: []map[string]string{order("42", "yes"), order("42", "yes"), order("42", "no"), order("7", "no")}}
}

// Delete removes the matching orders. Repeating it has no further effect.
func (w *Warehouse) Delete(where Where) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.orders)
	w.orders = slices.DeleteFunc(w.orders, where.fits)
	w.statements = append(w.statements, "DELETE FROM orders WHERE "+where.String())
	return fmt.Sprintf("deleted %d orders where %s", before-len(w.orders), where)
}

// DropColumn removes a column.
func (w *Warehouse) DropColumn(column string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, order := range w.orders {
		delete(order, column)
	}
	w.statements = append(w.statements, "ALTER TABLE orders DROP COLUMN "+column)
	return "dropped column " + column
}

// Export copies all orders to a region.
func (w *Warehouse) Export(region string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.statements = append(w.statements, "COPY orders TO "+region)
	return fmt.Sprintf("copied %d orders to %s", len(w.orders), region)
}

// Statements lists the recorded statements.
func (w *Warehouse) Statements() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.statements)
}

// Where is a condition: these columns have these values.
type Where map[string]string

func (c Where) fits(order map[string]string) bool {
	for column, value := range c {
		if order[column] != value {
			return false
		}
	}
	return len(c) > 0 // an empty condition matches nothing, to avoid deleting everything
}

func (c Where) String() string {
	var terms []string
	for _, column := range slices.Sorted(maps.Keys(c)) {
		terms = append(terms, column+" = "+c[column])
	}
	return strings.Join(terms, " AND ")
}
