// A prompt in any of its formats as parts with a heading, a text or an image, and what each takes of the tokens.

/** A heading of a text part: `[Request History:]`. */
const HEADING = /^\[([^\]\n]{1,300}):\](?:\n ?|$)/;

/** The largest budget that the API takes. */
const BUDGET_MAX = 100_000_000;

const encoder = new TextEncoder();

/**
 * The parts of an answer: `{kind: "text", heading, text, whole, bytes}` or `{kind: "image", src, type, bytes, label, cached}`.
 * `body` is the parsed answer, undefined for markdown; `text` is the answer itself.
 */
export function partsOf(body, text) {
  if (!Array.isArray(body)) return markdownParts(text);
  return body.map((part) => ({ ...(imageOf(part) ?? textPart(textIn(part))), cached: part?.cache_control !== undefined }));
}

function textIn(part) {
  return typeof part?.text === "string" ? part.text : JSON.stringify(part);
}

function textPart(whole) {
  const heading = HEADING.exec(whole);
  return { kind: "text", heading: heading?.[1], text: heading ? whole.slice(heading[0].length) : whole, whole, bytes: size(whole) };
}

/** The image of a part, in any provider's form. */
function imageOf(part) {
  const url = part?.image_url?.url ?? (part?.type === "input_image" ? part.image_url : undefined) ?? part?.source?.url ?? part?.fileData?.fileUri;
  if (part?.type === "image_url" || part?.type === "input_image" || part?.fileData) return image(url ?? "", part.fileData?.mimeType);
  const data = part?.type === "image" ? part.source : part?.inlineData;
  if (!data) return undefined;
  if (url) return image(url);
  const type = data.media_type ?? data.mimeType;
  return image(`data:${type};base64,${data.data}`, type);
}

function image(src, type) {
  const text = String(src);
  const data = /^data:([^;,]*)(;base64)?,/.exec(text);
  return { kind: "image", src: text, type: type ?? data?.[1], bytes: data ? Math.floor(((text.length - data[0].length) * 3) / 4) : undefined };
}

/** An address that an image may be loaded from: image data, or a screenshot of this server under whichever name it has. */
export function imageSource(src) {
  if (/^data:image\/(png|jpeg|webp|gif|bmp);base64,/.test(src)) return src;
  const path = /^(?:https?:\/\/[^/]+)?(\/v1\/sessions\/[^/?#]+\/screenshots\/\d+\/image(?:\?[^#]*)?)$/.exec(src);
  return path?.[1];
}

function markdownParts(text) {
  const sections = text.split(/\n(?=## )/);
  return sections.map((whole) => {
    const heading = /^##? (.*)\n?/.exec(whole);
    return { kind: "text", heading: heading?.[1], text: heading ? whole.slice(heading[0].length).trim() : whole, whole, bytes: size(whole), isMarkdown: true };
  });
}

function size(text) {
  return text.length > 2_000_000 ? text.length : encoder.encode(text).length;
}

/**
 * What each section takes of `total` tokens: `[{name, tokens, bytes, kind}]`. Texts share by their bytes, four a token;
 * images have what remains.
 */
export function shares(parts, total) {
  const sections = new Map();
  let images = 0;
  let current = "Heading";
  for (const part of parts) {
    if (part.kind === "image") {
      images += 1;
      continue;
    }
    current = part.heading === "Blackboard" ? "Heading" : (part.heading ?? (part.whole.startsWith("[Left out") ? "Note" : "Screenshots as text"));
    sections.set(current, (sections.get(current) ?? 0) + part.bytes);
  }
  const found = [...sections].map(([name, bytes]) => ({ name, bytes, kind: "text", tokens: bytes / 4 }));
  const text = found.reduce((sum, one) => sum + one.tokens, 0);
  const rest = total === undefined ? 0 : Math.max(0, total - text);
  const scale = total === undefined || text === 0 ? 1 : (images > 0 ? Math.min(text, total) : total) / text;
  for (const one of found) one.tokens *= scale;
  if (images > 0) found.push({ name: images === 1 ? "1 image" : `${images} images`, kind: "image", tokens: rest });
  return found;
}

/** The whole prompt as a text to copy: texts as they are, a line for each image. */
export function asText(parts) {
  return parts.map((part) => (part.kind === "image" ? imageLine(part) : part.whole)).join("\n\n");
}

/** One line that stands for an image and differs for another one. */
export function imageLine({ src, type, bytes }) {
  if (!src.startsWith("data:")) return `[image ${src}]`;
  let hash = 2166136261;
  for (let i = 0; i < src.length; i += Math.max(1, Math.floor(src.length / 4096))) hash = Math.imul(hash ^ src.charCodeAt(i), 16777619);
  return `[image ${type ?? ""}, ${bytes} bytes, ${(hash >>> 0).toString(16)}]`;
}

/** The query of a prompt from the address's parameters. */
export function promptQuery(params, changes = {}) {
  const query = {};
  for (const name of ["format", "include", "keys", "latest", "screenshots", "images", "max_px", "profile", "cache_marks", "tokenizer", "ascii", "max_tokens", "at"]) {
    const value = name in changes ? changes[name] : params[name];
    if (value !== undefined && value !== null && value !== "") query[name] = value;
  }
  return query;
}

/** The query by which the page reads a prompt: images by address, so that a hundred of them are not read with each change. */
export function viewQuery(params, changes = {}) {
  const query = promptQuery(params, changes);
  // The largest budget makes the server tell its estimate, and leaves nothing out.
  return { ...query, images: query.images ?? (query.profile ? undefined : "url"), max_tokens: query.max_tokens ?? BUDGET_MAX };
}
