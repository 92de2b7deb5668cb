package move_test

import (
	"os"
	"testing"

	"github.com/accession/accession/internal/storetest/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }
