// Names that somebody chose. What would turn the letters around or hide some is shown instead of obeyed.
import { el } from './dom.js';

const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** "report\u202efdp.exe" → "report[U+202E]fdp.exe". */
export const visible = (name) => String(name ?? '').replace(invisible, (c) => `[U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`);

/** A name in a line of other text. */
export const nameOf = (name) => el('bdi', {}, visible(name));
