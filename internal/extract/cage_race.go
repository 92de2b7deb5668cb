//go:build race

package extract

// The race detector maps terabytes of address space, so a build with it has no memory wall. Only tests are built so.
const memoryLimited = false
