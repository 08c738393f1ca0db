// Vercel's AI SDK.
import { createMCPClient, ElicitationRequestSchema } from '@ai-sdk/mcp';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount } from 'ai';

const token = process.env.BLACKBOARD_TOKEN;
const board = await createMCPClient({
  transport: {
    type: 'http',
    url: process.env.BOARD_URL,
    headers: token ? { Authorization: `Bearer ${token}` } : {},
  },
  capabilities: { elicitation: {} },
});
// The user's answer to a question with `ask_here`.
board.onElicitationRequest(ElicitationRequestSchema, async request => {
  console.log(request.params.message);
  return { action: 'accept', content: { answer: 'green' } };
});
const scripted = createOpenAICompatible({ name: 'scripted', baseURL: process.env.OPENAI_BASE_URL });
const result = await generateText({
  model: scripted('scripted'),
  instructions: `You are a worker.\n${board.instructions}`,
  tools: await board.tools(),
  stopWhen: isStepCount(100),
  prompt: process.argv[2],
});
console.log(result.text);
await board.close();
