import { writeAnswer } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import { parseBasePath } from '../../platform/values.js'
import type { OpenApiFlags } from './service-spec.js'

export async function printOpenApi({ basePath }: OpenApiFlags, io: Io): Promise<void> {
  const { openApi } = await import('../../server/openapi.js')
  await writeAnswer(io, `${openApi(parseBasePath('--base-path', basePath))}\n`, 'Run it again')
}
