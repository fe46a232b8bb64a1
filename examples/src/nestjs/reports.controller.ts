import { Controller, Get } from "@nestjs/common"

@Controller()
export class ReportsController {
  @Get("reports")
  list() {
    return []
  }
}
