import { writeAnswer } from '../../output/output.js'
import { parseBasePath } from '../../platform/values.js'
import { defineCommand } from '../define-command.js'

export const openapi = defineCommand({
  name: 'openapi',
  description: 'Print what plants serve answers at /openapi.json: the description of its interface, OpenAPI 3.1.',
  options: [{ flags: '--base-path <path>', description: 'what stands before /plants, such as /v1', parse: parseBasePath }],
  examples: ['plants openapi > openapi.json'],
  async run({ flags: { basePath = '' } }, io) {
    const { openApi } = await import('../../server/openapi.js')
    await writeAnswer(io, `${openApi(basePath)}\n`)
  },
})
