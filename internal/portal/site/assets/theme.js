// Runs before anything is drawn, so that a chosen theme never flashes.
try {
  const chosen = localStorage.getItem('accession-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch { /* storage is off: the system's theme it is */ }
