import { parseBasePath } from '../../config/option-values.js'
import { writeAnswer } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'

interface OpenapiOptions extends GlobalOptions {
  basePath?: string
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Print the OpenAPI description of the HTTP API, which plants serve has at /openapi.json.',
    )
    .value('--base-path <prefix>', 'path prefix of /plants, such as /v1', parseBasePath)
    .addExamples('plants openapi > openapi.json')
    .handler(openapi)
}

export async function openapi({ basePath = '' }: OpenapiOptions, io: Io): Promise<void> {
  const { openApi } = await import('../../server/routes.js')
  await writeAnswer(io, `${openApi(basePath)}\n`)
}
