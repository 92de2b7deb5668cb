// Every page of the documentation: code that can be copied, headings that can be found, the section that is being read.

function copyButtons() {
  for (const block of document.querySelectorAll('.code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'small';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      const code = block.querySelector('code');
      let said = 'Copied';
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch { // no clipboard without TLS: the text is selected, and the person copies it
        getSelection().selectAllChildren(code);
        said = 'Selected';
      }
      button.textContent = said;
      button.dataset.done = '';
      setTimeout(() => {
        button.textContent = 'Copy';
        delete button.dataset.done;
      }, 2000);
    });
    block.append(button);
  }
}

const shown = 12; // findings at most

async function search() {
  const form = document.querySelector('#search');
  const input = document.querySelector('#sought');
  const found = document.querySelector('#found');
  let asked;
  const headings = () => {
    asked ??= fetch('/docs/assets/headings.json').then((answer) => answer.json());
    return asked;
  };
  const find = async () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return found.replaceChildren();
    const hits = (await headings()).filter(({ page, title }) => words.every((word) => `${page} ${title}`.toLowerCase().includes(word)));
    const links = hits.slice(0, shown).map(({ page, title, url }) => {
      const link = document.createElement('a');
      const name = document.createElement('b');
      const where = document.createElement('small');
      link.href = url;
      name.textContent = title;
      where.textContent = page;
      link.append(name, title === page ? '' : where);
      return link;
    });
    const said = document.createElement('p');
    if (!hits.length) said.textContent = 'No heading has these words.';
    else if (hits.length > shown) said.textContent = `${hits.length - shown} more`;
    found.replaceChildren(...links, ...(said.textContent ? [said] : []));
  };
  form.hidden = false;
  input.addEventListener('input', find);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    found.querySelector('a')?.click();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    input.value = '';
    find();
  });
}

function menu() {
  const details = document.querySelector('.menu');
  const wide = matchMedia('(min-width: 62rem)');
  const fit = () => { details.open = wide.matches; };
  fit();
  wide.addEventListener('change', fit);
}

function contents() {
  const links = new Map(Array.from(document.querySelectorAll('.contents a'), (link) => [link.hash.slice(1), link]));
  if (!links.size) return;
  const headings = [...links.keys()].map((id) => document.getElementById(decodeURIComponent(id))).filter(Boolean);
  const mark = () => {
    const current = headings.findLast((heading) => heading.getBoundingClientRect().top < 120) ?? headings[0];
    for (const [id, link] of links) {
      if (id === current.id) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  let due = false;
  addEventListener('scroll', () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      mark();
    });
  }, { passive: true });
  mark();
}

copyButtons();
search();
menu();
contents();
