import { writeAnswer } from '../../output/output.js'
import { parseBasePath } from '../../platform/values.js'
import { rights } from '../../stores/common/store.js'
import { defineCommand } from '../define-command.js'

export const openapi = defineCommand({
  name: 'openapi',
  description: 'Print the OpenAPI 3.1 description of the HTTP API, which plants serve returns at /openapi.json.',
  options: [{ flags: '--base-path <path>', description: 'path prefix of /plants, such as /v1', parse: parseBasePath }],
  examples: ['plants openapi > openapi.json'],
  async run({ flags: { basePath = '' } }, io) {
    const { openApi } = await import('../../server/openapi.js')
    await writeAnswer(io, `${openApi(basePath, rights)}\n`)
  },
})
