package vault

import "github.com/accession/accession/internal/custody"

// Backends names everything that has to confirm a deletion, in the order in which it is asked.
func (v *Vault) Backends() (names []string) {
	for _, store := range v.stores() {
		names = append(names, store.Name())
	}
	return append(names, custody.BackendKeys)
}
