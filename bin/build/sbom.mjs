/**
 * What is in an executable, as CycloneDX 1.6: the program, its packages, and the runtime. The same input gives the same
 * text.
 *
 * @param {{ name: string, version: string, license: string }} program
 * @param {{ name: string, version: string, license: string }[]} packages
 * @param {{ file: string, sha256: string, bun: { name: string, version: string } }} built
 */
export function sbomOf(program, packages, { file, sha256, bun }) {
  const root = {
    ...component('application', program),
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    properties: [{ name: 'file', value: file }],
  }
  // Bun is MIT, and links JavaScriptCore, which is LGPL.
  const runtime = component('platform', { ...bun, license: 'MIT AND LGPL-2.0-or-later' })
  const components = [runtime, ...packages.map((entry) => component('library', entry))]
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: root },
    components,
    dependencies: [{ ref: root['bom-ref'], dependsOn: components.map((entry) => entry['bom-ref']) }],
  }
}

function component(type, { name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { type, 'bom-ref': purl, name, version, purl, licenses: [{ expression: license }] }
}
