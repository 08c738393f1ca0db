// HTML text from a template: every value is escaped, unless it was made by the template itself.

/** A piece of HTML that is safe to join. */
class Markup {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

const NAMED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** A text as HTML shows it. Characters that no HTML may have become U+FFFD. */
export function escaped(text) {
  return String(text)
    .toWellFormed()
    .replace(/[&<>"']/g, (one) => NAMED[one])
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/g, "\ufffd");
}

/** A template of HTML: markup and lists of it are joined, nothing is nothing, anything else is escaped. */
export function markup(strings, ...values) {
  return new Markup(strings.reduce((all, string, index) => all + joined(values[index - 1]) + string));
}

function joined(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(joined).join("");
  return value === undefined || value === null || value === false ? "" : escaped(value);
}
